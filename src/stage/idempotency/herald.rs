//! Who tells the operator that a write is unknown: an owner that says so itself. Of one that died the store knows, and tells
//! whoever asks (`/v1/writes`).

use std::sync::Arc;

use super::write::Owner;
use crate::alerts::Alerts;
use crate::route::Route;
use crate::store::write::id::WriteId;

/// Of one route. Cloning shares it.
#[derive(Clone)]
pub(super) struct Herald {
    pub(super) route: Arc<Route>,
    pub(super) alerts: Alerts,
}

impl Herald {
    /// Of one without an owner there is no record, so nobody can settle it.
    pub(super) fn tell(&self, owner: Option<&Owner>) {
        let (route, provider) = (&self.route.name, &self.route.provider);
        let Some(owner) = owner else {
            tracing::error!(route, provider = provider.name, "a write without a key was sent, and nobody knows what came of it");
            return;
        };
        let id = WriteId::new(owner.intention, owner.id);
        tracing::error!(%id, route, provider = provider.name, "a write was sent, and nobody knows what came of it");
        let remedy = match provider.idempotency {
            Some(_) => "asking again under the same key may settle it; if not,",
            None => "once the provider has said whether it was done,",
        };
        self.alerts.write_unknown(route, &id, || {
            format!("a write of route:{route} was sent, and nobody knows what came of it: {remedy} tollgate writes settle {id}")
        });
    }
}
