//! The list, and how many there are.

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::{Value, json};

use super::super::Admin;
use super::super::api::{Reply, refuse, store_failed};
use super::super::token::Authorized;
use super::{LOOKED_THROUGH, settle_from, unresolved};
use crate::clock::Timestamp;
use crate::question::wire;
use crate::store::write::id::WriteId;
use crate::store::write::{About, Unresolved};

/// No more are listed or counted, the oldest first.
const LISTED: usize = 1000;

/// A write, as an admin is shown it. Times are seconds since the epoch.
#[derive(Serialize)]
pub(super) struct Shown {
    id: String,
    route: String,
    provider: String,
    caller: String,
    state: &'static str,
    since: u64,
    settle_from: u64,
    price: Option<Price>,
    /// So often its price is set aside.
    sends: usize,
    request_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_key: Option<String>,
}

#[derive(Serialize)]
struct Price {
    micros: u64,
    currency: String,
}

impl Shown {
    /// As it may be settled from then on.
    pub(super) fn of(write: &Unresolved, settle_from: Timestamp) -> Self {
        let About { route, provider, caller, request, provider_key, reservations, micros, currency, first: _, to: _ } =
            write.about.clone();
        Self {
            id: WriteId::of(write).to_string(),
            route,
            provider,
            caller,
            state: if write.unknown { "unknown" } else { "sending" },
            since: write.since.seconds(),
            settle_from: settle_from.seconds_up(),
            price: (!currency.is_empty()).then_some(Price { micros, currency }),
            sends: reservations.len(),
            request_id: request,
            provider_key,
        }
    }
}

#[derive(Serialize)]
struct Page {
    writes: Vec<Shown>,
    /// There are more than that, or there may be.
    more: bool,
}

impl Page {
    /// Of the oldest so many, and one more if there is one.
    fn of(mut writes: Vec<Unresolved>, unknown: bool, settle_from: impl Fn(&Unresolved) -> Timestamp) -> Self {
        let unseen = writes.len() > LOOKED_THROUGH;
        writes.truncate(LOOKED_THROUGH);
        writes.retain(|write| write.unknown == unknown);
        let shown = writes.iter().take(LISTED).map(|write| Shown::of(write, settle_from(write)));
        Self { writes: shown.collect(), more: unseen || writes.len() > LISTED }
    }
}

pub(in super::super) async fn list(_: Authorized, State(admin): State<Admin>, RawQuery(query): RawQuery) -> Reply {
    let unknown = asks_for_unknown(query.as_deref())?;
    let writes = unresolved(&admin, LOOKED_THROUGH + 1).await.map_err(|error| store_failed(&error))?;
    Ok(Json(Page::of(writes, unknown, |write| settle_from(&admin, write))).into_response())
}

fn asks_for_unknown(query: Option<&str>) -> Result<bool, Response> {
    let wrong = |detail: String| refuse(StatusCode::BAD_REQUEST, "bad_request", detail);
    let pairs = wire::parse_query(query.unwrap_or_default()).map_err(|_| wrong("the query is malformed".to_owned()))?;
    let mut unknown = true;
    for (name, value) in pairs {
        unknown = match (name.as_ref(), value.as_ref()) {
            ("state", "unknown") => true,
            ("state", "sending") => false,
            ("state", _) => return Err(wrong("`state` must be unknown or sending".to_owned())),
            _ => return Err(wrong(format!("`{name}` is no parameter; there is state"))),
        };
    }
    Ok(unknown)
}

/// How many are unknown, for `/v1/status`; nothing, if the store does not say.
pub(in super::super) async fn standing(admin: &Admin) -> Option<Value> {
    let mut writes = unresolved(admin, LISTED + 1).await.ok()?;
    let more = writes.len() > LISTED;
    writes.truncate(LISTED);
    let unknown = writes.iter().filter(|write| write.unknown).count();
    Some(json!({ "unknown": unknown, "more": more }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::OpId;
    use crate::store::write::Intention;

    fn write(n: usize, unknown: bool) -> Unresolved {
        Unresolved {
            intention: Intention(n as u128),
            owner: OpId(1),
            since: Timestamp(n as u64),
            unknown,
            settle_from: Timestamp(1_000_001),
            about: About::default(),
        }
    }

    /// How many are shown of so many that are unknown, behind so many that are being sent; and whether there are more.
    fn shown(sending: usize, unknown: usize) -> (usize, bool) {
        let writes = (0..sending).map(|n| write(n, false)).chain((0..unknown).map(|n| write(n, true)));
        let page = Page::of(writes.take(LOOKED_THROUGH + 1).collect(), true, |write| write.settle_from);
        assert!(page.writes.iter().all(|write| write.state == "unknown"));
        (page.writes.len(), page.more)
    }

    #[test]
    fn what_is_not_shown_is_said_to_be_there() {
        assert_eq!(shown(0, 1000), (1000, false));
        assert_eq!(shown(0, 1001), (1000, true));
        assert_eq!(shown(9_999, 1), (1, false));
        assert_eq!(shown(10_000, 1), (0, true), "nobody has looked at it");
    }

    #[test]
    fn it_can_be_settled_in_the_second_it_is_said_to_be() {
        let write = write(1, true);
        let shown = Shown::of(&write, write.settle_from);
        assert_eq!((shown.settle_from, shown.price.is_none(), shown.sends), (2, true, 0));
    }
}
