//! Stops a route on behalf of a hook.

use crate::shared::Shared;
use crate::store::{StoreError, Switch, SwitchState};

/// Stops a route, or `all`: at once in this instance, then in the store, which tells the others. Other makers' stops are their own;
/// this one is never released by itself: an admin ends it.
pub(super) async fn stop(
    shared: &Shared,
    route: &str,
    position: SwitchState,
    maker: &str,
    reason: &str,
) -> Result<(), StoreError> {
    let switch = Switch { state: position, reason: reason.to_owned(), since: shared.clock.now().seconds(), until: None };
    shared.switches.set(route, maker, switch.clone());
    let stored = shared.switches.store(&shared.store, route, maker, switch).await;
    let stays = stored.is_ok();
    tracing::info!(target: "tollgate::audit", switch = route, state = ?position, maker, reason, stays, "a switch was set");
    stored
}
