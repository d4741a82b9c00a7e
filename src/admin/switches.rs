//! The kill switches: what holds, which stops stand, and setting them.
//!
//! An admin sets and ends the stop of the maker `admin`. Of another maker an admin can end a stop, and no more: that of a budget then
//! stays ended for the rest of its period, and that of anything else until it is made anew. *On* without a maker ends the admin's own
//! stop; where none of its own stands, those of the others: it is what the admin then must mean.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};

use super::Admin;
use super::api::{Reply, entry, parse, refuse, store_failed};
use super::token::Authorized;
use crate::stage::kill_switch::stops::{ADMIN, ALL, Stop};
use crate::store::{Switch, SwitchState};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Set {
    state: SwitchState,
    #[serde(default)]
    reason: String,
    maker: Option<String>,
}

/// What is told of a switch: the strictest stop, or what the admin last said; and all that stand.
#[derive(Serialize)]
struct Holds {
    #[serde(flatten)]
    switch: Switch,
    stops: Vec<Stop>,
}

fn known(admin: &Admin, name: &str) -> Result<(), Response> {
    if name == ALL { Ok(()) } else { entry(admin, name).map(drop) }
}

fn holds(admin: &Admin, name: &str) -> Response {
    let switches = &admin.gate.shared().switches;
    let stops = switches.standing(name);
    let said = || switches.said(name, ADMIN).filter(|said| said.state == SwitchState::On);
    let strictest = stops.first().map(|stop| stop.switch.clone()).or_else(said);
    let never = Switch { state: SwitchState::On, reason: String::new(), since: 0, until: None };
    Json(Holds { switch: strictest.unwrap_or(never), stops }).into_response()
}

pub(super) async fn get(_: Authorized, State(admin): State<Admin>, Path(name): Path<String>) -> Reply {
    known(&admin, &name)?;
    Ok(holds(&admin, &name))
}

pub(super) async fn put(_: Authorized, State(admin): State<Admin>, Path(name): Path<String>, body: Bytes) -> Reply {
    known(&admin, &name)?;
    let Set { state, reason, maker } = parse(&body)?;
    for maker in makers(&admin, &name, state, maker) {
        set(&admin, &name, &maker, state, reason.clone()).await?;
    }
    Ok(holds(&admin, &name))
}

/// Whose stops are meant.
fn makers(admin: &Admin, name: &str, state: SwitchState, maker: Option<String>) -> Vec<String> {
    if let Some(maker) = maker {
        return vec![maker];
    }
    let standing = admin.gate.shared().switches.standing(name);
    let makers: Vec<String> = standing.into_iter().filter(|stop| stop.of == name).map(|stop| stop.maker).collect();
    let others = state == SwitchState::On && !makers.is_empty() && makers.iter().all(|maker| maker != ADMIN);
    if others { makers } else { vec![ADMIN.to_owned()] }
}

async fn set(admin: &Admin, name: &str, maker: &str, state: SwitchState, reason: String) -> Result<(), Response> {
    let until = if maker == ADMIN { None } else { may_end(admin, name, maker, state)? };
    let shared = admin.gate.shared();
    let switch = Switch { state, reason, since: shared.clock.now().seconds(), until };
    // Turning something off must not wait for a store in trouble; turning it on must not be forgotten.
    if state != SwitchState::On {
        shared.switches.set(name, maker, switch.clone());
    }
    let stored = shared.switches.store(&shared.store, name, maker, switch.clone()).await;
    let stays = stored.is_ok();
    if stays || state != SwitchState::On {
        tracing::info!(target: "tollgate::audit", switch = name, maker, ?state, reason = switch.reason, stays, "a switch was set");
    }
    stored.map_err(|error| store_failed(&error))
}

/// Whether an admin may say that of another maker's stop; and until when that stop would have stood.
fn may_end(admin: &Admin, name: &str, maker: &str, state: SwitchState) -> Result<Option<u64>, Response> {
    if state != SwitchState::On {
        let detail = "an admin ends the stops of other makers and makes none: leave out the maker";
        return Err(refuse(StatusCode::BAD_REQUEST, "bad_request", detail));
    }
    let mut standing = admin.gate.shared().switches.standing(name).into_iter();
    let stop = standing.find(|stop| stop.of == name && stop.maker == maker);
    let none = || refuse(StatusCode::NOT_FOUND, "not_found", format!("no stop made by {maker:?} stands on {name:?}"));
    stop.map(|stop| stop.switch.until).ok_or_else(none)
}
