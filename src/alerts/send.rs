//! One alert on its way: asked of the store whether it is the first, then sent until the receiver has it, for a minute or so.

use std::time::Duration;

use serde::Serialize;

use super::sign::signature;
use super::{Alert, Shared};
use crate::config::alerts;
use crate::config::secret::Secret;

/// How often an alert is tried, and how long one try may take. Between two of them is a wait that doubles.
const TRIES: u32 = 8;
const TIMEOUT: Duration = Duration::from_secs(5);
const FIRST_WAIT: Duration = Duration::from_millis(500);
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// So often a wait looks whether the gateway ends.
const LOOK: Duration = Duration::from_millis(100);

/// Who is told.
pub(crate) struct Webhook {
    url: String,
    secret: Option<Secret>,
    http: reqwest::Client,
}

/// An alert as it is sent.
#[derive(Serialize)]
struct Message<'a> {
    /// The same however often it is tried.
    id: String,
    at: u64,
    #[serde(flatten)]
    alert: &'a Alert,
}

/// What came of one try.
enum Tried {
    Received,
    /// It may be different later.
    Again(String),
    /// It will not.
    Never(String),
}

impl Webhook {
    pub(crate) fn new(config: &alerts::Alerts) -> Result<Self, reqwest::Error> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("tollgate/", env!("CARGO_PKG_VERSION")))
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .referer(false)
            .timeout(TIMEOUT)
            .build()?;
        Ok(Self { url: config.webhook.url.clone(), secret: config.secret.clone(), http })
    }

    async fn send(&self, body: &str, now: u64) -> Tried {
        let mut request = self.http.post(&self.url).header("content-type", "application/json").body(body.to_owned());
        if let Some(secret) = &self.secret {
            let Some(signature) = signature(secret.expose(), now, body) else { return Tried::Never("no signature".into()) };
            request = request.header("x-tollgate-signature", signature);
        }
        match request.send().await {
            Ok(response) => match response.status() {
                status if status.is_success() => Tried::Received,
                status if status.is_server_error() || matches!(status.as_u16(), 408 | 429) => Tried::Again(status.to_string()),
                status => Tried::Never(status.to_string()),
            },
            // The address may be a credential.
            Err(error) => Tried::Again(error.without_url().to_string()),
        }
    }
}

impl Shared {
    /// Sends it, if no instance has; the word for the metric.
    pub(super) async fn deliver(&self, webhook: &Webhook, mark: &str, keep: Duration, alert: &Alert) -> &'static str {
        // Without the store nobody knows who has told it: better twice than not at all.
        if let Ok(false) = self.store.first(mark, keep).await {
            return "known";
        }
        let message = Message { id: uuid::Uuid::new_v4().to_string(), at: self.clock.now().seconds(), alert };
        let Ok(body) = serde_json::to_string(&message) else { return "failed" };
        let mut wait = FIRST_WAIT;
        for attempt in 1..=TRIES {
            let last = attempt == TRIES || self.tasks.is_closed();
            match webhook.send(&body, self.clock.now().seconds()).await {
                Tried::Received => return "sent",
                Tried::Again(_) if !last => {}
                Tried::Again(why) | Tried::Never(why) => {
                    tracing::error!(id = %message.id, kind = ?alert.kind, why, "an alert was not taken: it is lost");
                    return "failed";
                }
            }
            self.wait(wait).await;
            wait = wait.saturating_mul(2).min(LONGEST_WAIT);
        }
        "failed"
    }

    /// Waits, but not for longer than the gateway goes on.
    async fn wait(&self, time: Duration) {
        let mut left = time;
        while !left.is_zero() && !self.tasks.is_closed() {
            let nap = left.min(LOOK);
            tokio::time::sleep(nap).await;
            left = left.saturating_sub(nap);
        }
    }
}
