//! The API's calls about paid writes: which are unknown, which are being sent, and settling one by what an admin has found out.

use crate::clock::Timestamp;
use crate::store::StoreError;
use crate::store::write::Unresolved;

use super::Admin;

mod list;
mod report;
mod settle;

pub(super) use list::{list, standing};
pub(super) use settle::settle;

/// From when on one may be said not to have been sent: its owner is not at it any more, and its provider has had the time of an
/// attempt.
fn settle_from(admin: &Admin, write: &Unresolved) -> Timestamp {
    let snapshot = admin.gate.snapshot();
    let providers = snapshot.config.routes.iter().map(|route| &route.provider);
    let timeout = providers.filter(|provider| provider.name == write.about.provider).map(|provider| provider.timeout).max();
    write.settle_from.max(write.since.after(timeout.unwrap_or_default()))
}

/// Among so many one is looked for, or those in one state: the oldest.
const LOOKED_THROUGH: usize = 10_000;

async fn unresolved(admin: &Admin, most: usize) -> Result<Vec<Unresolved>, StoreError> {
    admin.gate.shared().store.unresolved(most).await
}
