//! Sets a switch on behalf of a hook.

use crate::shared::Shared;
use crate::store::{StoreError, Switch, SwitchState};

/// Stops a route, or `all`: at once in this instance, then in the store, which tells the others. A switch that is stricter already
/// is left as it is: no hook opens anything. Nothing made here is released by itself; an admin ends it.
pub(super) async fn stop(
    shared: &Shared,
    route: &str,
    position: SwitchState,
    maker: &str,
    reason: &str,
) -> Result<(), StoreError> {
    let stands = shared.switches.said(route).map_or(SwitchState::On, |switch| switch.state);
    if stands as u8 > position as u8 {
        tracing::info!(target: "tollgate::audit", switch = route, ?stands, maker, reason, "a stop was asked for; the switch is stricter already");
        return Ok(());
    }
    let switch = Switch { state: position, reason: format!("{maker}: {reason}"), since: shared.clock.now().seconds() };
    shared.switches.set(route, switch.clone());
    let stored = shared.store.set_switch(route, switch.clone()).await;
    let stays = stored.is_ok();
    if let Ok(revision) = stored {
        shared.switches.heard(route, switch, revision);
    }
    tracing::info!(target: "tollgate::audit", switch = route, state = ?position, maker, reason, stays, "a switch was set");
    stored.map(drop)
}
