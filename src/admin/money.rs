//! The API's calls about money: what was spent, what was saved, and that a loss of records is known.

use std::collections::HashMap;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;
use serde_json::json;

use super::Admin;
use super::api::{Reply, refuse, store_failed};
use super::period::Bound;
use super::token::Authorized;
use crate::money::report::{Entry, Report, group};
use crate::money::window::Zone;
use crate::question::wire;
use crate::store::money::{Days, Saved, Spent};

/// What is asked about.
struct Asked {
    since: Bound,
    until: Bound,
    by: Vec<String>,
}

impl Asked {
    /// Reads the query; `keys` is what can be grouped by.
    fn read(query: Option<&str>, keys: &[&str]) -> Result<Self, Response> {
        let wrong = |name: &str, detail: &str| refuse(StatusCode::BAD_REQUEST, "bad_request", format!("`{name}` {detail}"));
        let mut asked = Self { since: Bound::Month, until: Bound::Today, by: vec!["route".to_owned()] };
        let pairs = wire::parse_query(query.unwrap_or_default());
        for (name, value) in pairs.map_err(|_| refuse(StatusCode::BAD_REQUEST, "bad_request", "the query is malformed"))? {
            match name.as_ref() {
                "since" | "until" => {
                    let bound = Bound::parse(&value);
                    let bound = bound.ok_or_else(|| wrong(&name, "must be a date such as 2026-11-30, today or month"))?;
                    *(if name == "since" { &mut asked.since } else { &mut asked.until }) = bound;
                }
                "by" => {
                    asked.by = value.split(',').map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()).collect();
                    if asked.by.iter().any(|key| !keys.contains(&key.as_str())) {
                        return Err(wrong("by", &format!("must be a list of {}", keys.join(", "))));
                    }
                }
                _ => return Err(wrong(&name, "is no parameter; there are since, until and by")),
            }
        }
        Ok(asked)
    }
}

pub(super) async fn spend(_: Authorized, State(admin): State<Admin>, RawQuery(query): RawQuery) -> Reply {
    let (asked, zones) = (Asked::read(query.as_deref(), Spent::KEYS)?, Zones::of(&admin));
    let days = zones.days(&admin, &asked)?;
    let spent = admin.gate.shared().store.spent(&days).await.map_err(|error| store_failed(&error))?;
    Ok(report(&admin, &asked, days, &zones, spent))
}

/// What this instance has not written yet is written before; others are at most a second behind.
pub(super) async fn savings(_: Authorized, State(admin): State<Admin>, RawQuery(query): RawQuery) -> Reply {
    let (asked, zones) = (Asked::read(query.as_deref(), Saved::KEYS)?, Zones::of(&admin));
    let days = zones.days(&admin, &asked)?;
    let shared = admin.gate.shared();
    shared.tally.flush(&shared.store, &shared.clock).await.map_err(|error| store_failed(&error))?;
    let saved = shared.store.saved(&days).await.map_err(|error| store_failed(&error))?;
    Ok(report(&admin, &asked, days, &zones, saved))
}

fn report<E: Entry<Sums: Serialize>>(admin: &Admin, asked: &Asked, days: Days, zones: &Zones, mut entries: Vec<E>) -> Response {
    let now = admin.gate.shared().clock.now();
    entries.retain(|entry| {
        let (day, route) = entry.day_and_route();
        let zone = zones.zone(route);
        asked.since.day(zone, now).as_str() <= day && day <= asked.until.day(zone, now).as_str()
    });
    let (rows, totals) = (group(&entries, &asked.by), group(&entries, &[]));
    Json(Report { since: days.from, until: days.to, by: asked.by.clone(), rows, totals }).into_response()
}

/// The zones that days are counted in, by route.
struct Zones {
    routes: HashMap<String, Zone>,
    /// For routes there are no more.
    other: Zone,
}

impl Zones {
    fn of(admin: &Admin) -> Self {
        let snapshot = admin.gate.snapshot();
        let zone = |entry: &std::sync::Arc<crate::server::router::Entry>| (entry.route.name.clone(), entry.route.zone());
        Self { routes: snapshot.router.entries().map(zone).collect(), other: Zone::utc() }
    }

    fn zone(&self, route: &str) -> &Zone {
        self.routes.get(route).unwrap_or(&self.other)
    }

    /// All days that are asked about, in whichever zone.
    fn days(&self, admin: &Admin, asked: &Asked) -> Result<Days, Response> {
        let now = admin.gate.shared().clock.now();
        let zones = || self.routes.values().chain(self.routes.is_empty().then_some(&self.other));
        let from = zones().map(|zone| asked.since.day(zone, now)).min().unwrap_or_default();
        let to = zones().map(|zone| asked.until.day(zone, now)).max().unwrap_or_default();
        if from > to {
            return Err(refuse(StatusCode::BAD_REQUEST, "bad_request", "`since` lies after `until`"));
        }
        Ok(Days { from, to })
    }
}

pub(super) async fn accept_loss(_: Authorized, State(admin): State<Admin>) -> Reply {
    admin.gate.shared().store.accept_loss().await.map_err(|error| store_failed(&error))?;
    tracing::info!(target: "tollgate::audit", "a loss of money's records was accepted");
    Ok(Json(json!({ "accepted": true })).into_response())
}
