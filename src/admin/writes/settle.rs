//! Settling one: first the record, then its money.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use super::super::Admin;
use super::super::api::{Reply, parse, refuse, store_failed};
use super::super::token::Authorized;
use super::list::Shown;
use super::report::Report;
use super::{LOOKED_THROUGH, settle_from, unresolved};
use crate::clock::{Timestamp, seconds_up};
use crate::money::found::settle as settle_money;
use crate::store::handle::StoreHandle;
use crate::store::write::id::WriteId;
use crate::store::write::{About, Settled, Settling, Unresolved};
use crate::store::{OpId, StoreError};

/// An answer is replayed for so long, where its route is gone.
const KEEP: Duration = Duration::from_hours(24);
/// How long whoever settles waits for the ledger. It goes on by itself.
const BOOKING: Duration = Duration::from_secs(2);
/// A store that did not answer may have settled all the same, so it is asked again: so often, after such a pause.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_millis(100);

/// What is told of it: what it was, and what it is.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    write: Shown,
    outcome: &'static str,
    /// The ledger has it.
    booked: bool,
}

pub(in super::super) async fn settle(_: Authorized, State(admin): State<Admin>, Path(id): Path<String>, body: Bytes) -> Reply {
    let wrong = |detail: &str| refuse(StatusCode::BAD_REQUEST, "bad_request", detail);
    let no_id = "an id is 32 hexadecimal digits, a hyphen and 8 more, as the list has it";
    let id: WriteId = id.parse().map_err(|_| wrong(no_id))?;
    let report: Report = parse(&body)?;
    report.check().map_err(wrong)?;
    let write = find(&admin, id).await?;
    let now = admin.gate.shared().clock.now();
    let from = settle_from(&admin, &write);
    // That it was sent makes nobody send it again; that it was not must not be said while it may still arrive.
    if from > now && !report.was_sent() {
        return Err(too_early(from, now));
    }
    let found = report.found(keep(&admin, &write.about.route), now);
    let settling = Settling { intention: write.intention, owner: write.owner, by: OpId::random(), found };
    let about = match resolve(&admin.gate.shared().store, &settling).await.map_err(|error| store_failed(&error))? {
        Settled::Yes(about) => about,
        Settled::NotBefore(from) => return Err(too_early(from, now)),
        Settled::None => return Err(none(id, false)),
    };
    let (outcome, status) = (report.outcome(), report.status());
    tracing::info!(target: "tollgate::audit", %id, route = about.route, outcome, status, "an unknown write was settled");
    let booked = book(&admin, about, report.was_sent()).await;
    Ok(Json(Told { write: Shown::of(&write, from), outcome, booked }).into_response())
}

async fn find(admin: &Admin, id: WriteId) -> Result<Unresolved, Response> {
    let writes = unresolved(admin, LOOKED_THROUGH).await.map_err(|error| store_failed(&error))?;
    let unseen = writes.len() >= LOOKED_THROUGH;
    writes.into_iter().find(|write| WriteId::of(write) == id).ok_or_else(|| none(id, unseen))
}

fn none(id: WriteId, unseen: bool) -> Response {
    let detail = if unseen {
        format!("{id} is not among the {LOOKED_THROUGH} oldest that are unknown: settle those first")
    } else {
        format!("no write {id} is unknown: it is settled, or was sent again since, or never was")
    };
    refuse(StatusCode::NOT_FOUND, "not_found", detail)
}

fn too_early(from: Timestamp, now: Timestamp) -> Response {
    let at = Timestamp::of_seconds(from.seconds_up()).written();
    let detail = format!("whoever sends it may still be at it: it can be settled from {at} on");
    let retry_after = [(header::RETRY_AFTER, seconds_up(from.since(now)).to_string())];
    (retry_after, refuse(StatusCode::CONFLICT, "too_early", detail)).into_response()
}

/// How long answers of a route are replayed.
fn keep(admin: &Admin, route: &str) -> Duration {
    let snapshot = admin.gate.snapshot();
    let entry = snapshot.router.entries().find(|entry| entry.route.name == route);
    entry.and_then(|entry| entry.route.writes).map_or(KEEP, |writes| writes.keep)
}

/// Settles the record, once, however often the store is asked.
async fn resolve(store: &StoreHandle, settling: &Settling) -> Result<Settled, StoreError> {
    let mut settled = store.resolve(settling.clone()).await;
    for _ in 1..TRIES {
        if settled.is_ok() {
            break;
        }
        tokio::time::sleep(PAUSE).await;
        settled = store.resolve(settling.clone()).await;
    }
    settled
}

/// Settles its money, however long the store takes. Whether that is done already.
async fn book(admin: &Admin, about: About, was_sent: bool) -> bool {
    let shared = admin.gate.shared();
    let store = shared.store.clone();
    let booking = shared.tasks.spawn(async move { settle_money(&store, &about, was_sent).await });
    matches!(tokio::time::timeout(BOOKING, booking).await, Ok(Ok(())))
}

#[cfg(test)]
mod tests;
