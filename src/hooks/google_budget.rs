//! Google Cloud's budget notifications: at a share of a budget, a switch falls.
//!
//! A slow backstop, never the guard itself: Google counts costs hours late, and sends the state of a budget several times a day.
//! Messages come at least once and in no order, so each is judged by its own amounts, and a period of a budget is acted on once:
//! nothing that comes twice, late or lower opens what is stopped or stops what an admin has opened since. A new period opens
//! nothing either.
//!
//! What was acted on is two marks in the store: `begun` before the switch is set, `done` after. Whoever finds the first without the
//! second does it again: between them an instance has died, or its store has failed. They are kept longer than a yearly budget
//! lasts, since its notices come all year. Without the store nothing is known, so the message is refused and comes again.
//!
//! Sources: Google Cloud Billing, "Set up programmatic notifications"; Pub/Sub, "Push subscriptions" (delivery, acknowledgement).

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;

use super::config::Order;
use super::envelope::{Unread, open};
use super::notice::Notice;
use super::periods::{Acting, Period, Periods, Place};
use super::stop::stop;
use super::token::Tokens;
use super::words::clean;
use crate::shared::Shared;
use crate::store::StoreError;

/// As which it stops, and is counted.
pub(super) const MAKER: &str = "google-budget";
/// How long it is known that a period was acted on.
const KNOWN: Duration = Duration::from_secs(400 * 86_400);

/// The hook as the config in force has it.
pub(crate) struct Hook {
    pub(super) tokens: Tokens,
    pub(super) order: Order,
}

/// What came of a message that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Told {
    Stopped,
    /// The period was acted on before.
    StoppedBefore,
    Below,
    Repeated,
    Older,
    Malformed,
    Foreign,
}

impl Told {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Stopped => "stopped",
            Self::StoppedBefore => "stopped_before",
            Self::Below => "below",
            Self::Repeated => "repeated",
            Self::Older => "older",
            Self::Malformed => "malformed",
            Self::Foreign => "foreign",
        }
    }
}

/// What outlives a reload. Cloning shares it.
#[derive(Clone, Default)]
pub(super) struct Budgets(Arc<Mutex<Periods>>);

impl Budgets {
    /// Takes a push. An error is one of the store: the message is to come again.
    pub(super) async fn take(&self, shared: &Shared, order: &Order, body: &[u8]) -> Result<Told, StoreError> {
        let read = open(body).and_then(|message| Ok((Notice::read(&message, shared.clock.now())?, message.id)));
        match read {
            Ok((notice, id)) => {
                let told = self.heed(shared, order, &notice).await;
                let (budget, period, spent) = (&notice.budget, notice.begins(), notice.spent);
                let result = told.as_ref().map_or("failed", |told| told.word());
                tracing::info!(budget, period, %spent, message = id, result, "a budget's notice");
                told
            }
            Err(Unread::Malformed(why)) => {
                tracing::warn!(why = clean(&why, 200), "a push that cannot be read as a budget's notice; it is acknowledged");
                Ok(Told::Malformed)
            }
            Err(Unread::Foreign(why)) => {
                tracing::warn!(why, "a push that is no budget's notice of ours; it is acknowledged");
                Ok(Told::Foreign)
            }
        }
    }

    /// One at a time: of two alike the second must find what the first has done.
    async fn heed(&self, shared: &Shared, order: &Order, notice: &Notice) -> Result<Told, StoreError> {
        let mut periods = self.0.lock().await;
        let (period, place) = periods.note(notice, order.at);
        if place == Place::Older {
            return Ok(Told::Older);
        }
        if place == Place::NextPeriod {
            let (budget, period) = (&notice.budget, notice.begins());
            tracing::info!(budget, period, "a budget's next period began; what is stopped stays so until an admin opens it");
        }
        if notice.reaches(order.at) {
            return act(shared, order, notice, period).await;
        }
        Ok(if place == Place::Repeated { Told::Repeated } else { Told::Below })
    }
}

/// Stops, once a period.
async fn act(shared: &Shared, order: &Order, notice: &Notice, period: &mut Period) -> Result<Told, StoreError> {
    let mark = |step: &str| format!("{MAKER}:{}:{}:{}:{step}", notice.budget, notice.period, order.at);
    let done = async || shared.store.first(&mark("done"), KNOWN).await;
    let is_due = match period.acting {
        Acting::Done => false,
        Acting::Owed => true,
        Acting::Unknown => {
            // A mark that was set and not heard of would be taken for a stop that was made: rather one stop too many.
            period.acting = Acting::Owed;
            let never = shared.switches.said(&order.route, MAKER).is_none();
            shared.store.first(&mark("begun"), KNOWN).await? || never || done().await?
        }
    };
    if is_due {
        period.acting = Acting::Owed;
        stop(shared, &order.route, order.position, MAKER, &notice.reason(order.at)).await?;
    }
    period.acting = Acting::Done;
    done().await?;
    Ok(if is_due { Told::Stopped } else { Told::StoppedBefore })
}
