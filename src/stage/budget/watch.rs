//! What follows from what is spent: what is left is shown, shares of a cap that are reached are told, and a cap that is used up may
//! stop its routes until its period ends.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::task::TaskTracker;

use crate::alerts::{Alert, Alerts, Kind, Numbers};
use crate::clock::Clock;
use crate::money::Money;
use crate::money::budget::Over;
use crate::route::Route;
use crate::shared::Shared;
use crate::stage::kill_switch::Switches;
use crate::stage::kill_switch::stops::{BUDGET, PROVIDER_BUDGET};
use crate::store::handle::StoreHandle;
use crate::store::{Switch, SwitchState};
use crate::telemetry::Metrics;

/// How often storing a stop is tried. It is in force here all the same, and who else is refused makes it, too.
const TRIES: u32 = 5;
/// Counters of a window may still be settled after its end.
const AFTER: Duration = Duration::from_secs(86_400);

/// The watch over one route's caps.
pub(crate) struct Watch {
    route: String,
    /// All routes of its provider.
    siblings: Vec<String>,
    switches: Switches,
    store: StoreHandle,
    clock: Clock,
    tasks: TaskTracker,
    alerts: Alerts,
    metrics: Arc<Metrics>,
}

impl Watch {
    pub(crate) fn new(route: &Route, routes: &[Arc<Route>], shared: &Shared) -> Self {
        let siblings = routes.iter().filter(|other| other.provider.name == route.provider.name);
        Self {
            route: route.name.clone(),
            siblings: siblings.map(|route| route.name.clone()).collect(),
            switches: shared.switches.clone(),
            store: shared.store.clone(),
            clock: shared.clock.clone(),
            tasks: shared.tasks.clone(),
            alerts: shared.alerts.clone(),
            metrics: Arc::clone(&shared.metrics),
        }
    }

    /// So much of each cap is used.
    pub(super) fn used(&self, over: &[Over], used: &[u64], caller: u128) {
        for (over, used) in over.iter().zip(used) {
            self.show(over, *used);
            self.tell(over, *used, share(*used, over.cap.most), caller);
        }
    }

    /// A cap could not hold an attempt, although it may not be used to the last. `least` is what the cheapest costs: while the cap
    /// holds that, it was the question that was too dear, and no reason to stop.
    pub(super) fn exhausted(&self, over: &Over, used: u64, least: u64, caller: u128) {
        self.show(over, used);
        if used.saturating_add(least) <= over.cap.most {
            return self.tell(over, used, share(used, over.cap.most), caller);
        }
        self.tell(over, used, share(used, over.cap.most).max(100), caller);
        if let Some(state) = over.stop.filter(|_| !over.per_caller) {
            self.stop(over, used, state);
        }
    }

    /// The store has lost what was spent.
    pub(super) fn lost(&self) {
        let message = "the store has lost records of money: paid calls under a budget are refused until the loss is accepted";
        let alert =
            || Alert { kind: Kind::RecordsLost, subject: "store".into(), numbers: None, write: None, message: message.into() };
        self.alerts.say("alert:records_lost".into(), Duration::from_secs(3600), alert);
    }

    fn show(&self, over: &Over, used: u64) {
        if !over.per_caller {
            self.metrics.budget_left(&over.scope, over.window, over.cap.most.saturating_sub(used));
        }
    }

    fn tell(&self, over: &Over, used: u64, share: u64, caller: u128) {
        for at in over.alert.iter().copied().filter(|at| share >= u64::from(*at)) {
            let whose = if over.per_caller { "a caller's budget" } else { "the budget" };
            let message = || {
                let amount = |micros| Money { micros, currency: over.currency };
                let (used, cap) = (amount(used), amount(over.cap.most));
                format!("{at}% of {whose} of {} for the {} is used: {used} of {cap}", over.scope, over.window)
            };
            let alert = || Alert {
                kind: Kind::Budget,
                subject: over.scope.clone(),
                numbers: Some(numbers(over, used, caller)),
                write: None,
                message: message(),
            };
            self.alerts.say(format!("alert:{}|{at}", over.cap.name), self.keep(over), alert);
        }
    }

    fn keep(&self, over: &Over) -> Duration {
        over.cap.ends.since(self.clock.now()).saturating_add(AFTER)
    }

    /// Stops the cap's routes until its window ends: here at once, for good and everywhere when the store has it.
    fn stop(&self, over: &Over, used: u64, state: SwitchState) {
        let now = self.clock.now().seconds();
        // Not earlier than the window's end, which is a whole second on every clock there is.
        let until = over.cap.ends.seconds_up();
        if until <= now {
            return;
        }
        let (maker, routes) = if over.of_provider {
            (PROVIDER_BUDGET, self.siblings.as_slice())
        } else {
            (BUDGET, std::slice::from_ref(&self.route))
        };
        let reason = format!("the budget of {} for the {} is used up", over.scope, over.window);
        let switch = Switch { state, reason, since: now, until: Some(until) };
        let stopped = routes.iter().filter(|route| self.switches.set_longer(route, maker, switch.clone()));
        let stopped: Vec<&String> = stopped.inspect(|route| self.keep_stop(route, maker, &switch)).collect();
        if stopped.is_empty() {
            return;
        }
        let alert = || Alert {
            kind: Kind::BudgetStop,
            subject: over.scope.clone(),
            numbers: Some(numbers(over, used, 0)),
            write: None,
            message: format!("{}: {} until {}", switch.reason, told(&stopped, state), over.cap.ends.written()),
        };
        self.alerts.say(format!("alert:{}|stop", over.cap.name), self.keep(over), alert);
    }

    fn keep_stop(&self, route: &str, maker: &'static str, switch: &Switch) {
        tracing::info!(target: "tollgate::audit", switch = route, maker, state = ?switch.state, reason = switch.reason, "a switch was set");
        let (switches, store) = (self.switches.clone(), self.store.clone());
        let (route, switch) = (route.to_owned(), switch.clone());
        self.tasks.spawn(async move {
            for attempt in 0..TRIES {
                if switches.store(&store, &route, maker, switch.clone()).await.is_ok() {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(100 << attempt)).await;
            }
            tracing::error!(route, maker, "a stop could not be stored: it stands in this instance alone");
        });
    }
}

fn told(routes: &[&String], state: SwitchState) -> String {
    let routes: Vec<&str> = routes.iter().map(|route| route.as_str()).collect();
    let word = if state == SwitchState::Off { "off" } else { "cached" };
    format!("{} {} {word}", routes.join(", "), if routes.len() == 1 { "is" } else { "are" })
}

/// Whole percents, rounded down.
fn share(used: u64, most: u64) -> u64 {
    let share = (u128::from(used) * 100).checked_div(u128::from(most)).unwrap_or(100);
    u64::try_from(share).unwrap_or(u64::MAX)
}

fn numbers(over: &Over, used: u64, caller: u128) -> Numbers {
    Numbers {
        used,
        cap: over.cap.most,
        percent: share(used, over.cap.most),
        currency: over.currency.code().to_owned(),
        window: over.window,
        caller: over.per_caller.then(|| format!("{:08x}", caller >> 96)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_never_said_before_it_is_reached() {
        assert_eq!([share(0, 7), share(3, 7), share(7, 7), share(8, 7)], [0, 42, 100, 114]);
        assert_eq!([share(u64::MAX, 1), share(1, u64::MAX), share(1, 0)], [u64::MAX, 0, 100]);
    }
}
