//! The API's calls. Every change is written to the log under the target `tollgate::audit`.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Admin;
use super::token::Authorized;
use crate::clock::Timestamp;
use crate::route::Route;
use crate::server::router::Entry;
use crate::server::{ReloadError, reload as reload_config};
use crate::stage::lockout;
use crate::store::{Digest, StoreError};

pub(super) type Reply = Result<Response, Response>;

/// A problem (RFC 9457).
pub(super) fn problem(status: StatusCode, code: &str, detail: impl Into<String>) -> impl IntoResponse {
    let detail: String = detail.into();
    let body = json!({ "type": format!("urn:tollgate:{code}"), "title": detail, "status": status.as_u16(), "detail": detail, "code": code });
    (status, [("content-type", "application/problem+json")], body.to_string())
}

pub(super) fn refuse(status: StatusCode, code: &str, detail: impl Into<String>) -> Response {
    problem(status, code, detail).into_response()
}

pub(super) fn store_failed(error: &StoreError) -> Response {
    refuse(StatusCode::SERVICE_UNAVAILABLE, "store_unavailable", error.to_string())
}

pub(super) async fn status(_: Authorized, State(admin): State<Admin>) -> Response {
    let shared = admin.gate.shared();
    let snapshot = admin.gate.snapshot();
    let now = shared.clock.now();
    let mut pauses = serde_json::Map::new();
    for provider in snapshot.router.entries().map(|entry| &entry.route.provider.name) {
        if let Some(until) = shared.store.paused(provider).filter(|until| *until > now) {
            pauses.insert(provider.clone(), json!(until.seconds()));
        }
    }
    let breakers: serde_json::Map<String, Value> =
        shared.breaker_states().into_iter().map(|(name, state)| (name, json!(state))).collect();
    Json(json!({
        "generation": snapshot.generation,
        "refused_reload": admin.gate.last_refused().map(|why| why.to_string()),
        "store": super::health::store(&admin).await,
        "breakers": breakers,
        "pauses": pauses,
        "flights": shared.metrics.flights.get(),
        "writes": super::writes::standing(&admin).await,
        "draining": admin.gate.is_draining(),
    }))
    .into_response()
}

pub(super) async fn routes(_: Authorized, State(admin): State<Admin>) -> Response {
    let snapshot = admin.gate.snapshot();
    let mut routes: Vec<Value> = snapshot.router.entries().map(|entry| describe(&entry.route, &admin)).collect();
    routes.sort_by_key(|route| route["name"].as_str().map(ToOwned::to_owned));
    Json(json!({ "routes": routes })).into_response()
}

fn describe(route: &Route, admin: &Admin) -> Value {
    let switch = admin.gate.shared().switches.of(&route.name).state();
    json!({
        "name": route.name,
        "provider": route.provider.name,
        "expose": format!("{} {}", route.expose.method, route.expose.path()),
        "native": route.native,
        "price": route.provider.price.as_ref().map(|price| price.least().to_string()),
        "switch": switch,
    })
}

/// The entry of a route, or the problem that there is none.
pub(super) fn entry(admin: &Admin, name: &str) -> Result<std::sync::Arc<Entry>, Response> {
    let snapshot = admin.gate.snapshot();
    let found = snapshot.router.entries().find(|entry| entry.route.name == name).cloned();
    found.ok_or_else(|| refuse(StatusCode::NOT_FOUND, "not_found", format!("there is no route {name:?}")))
}

pub(super) fn parse<T: for<'de> Deserialize<'de>>(body: &Bytes) -> Result<T, Response> {
    let wrong = |detail: String| refuse(StatusCode::BAD_REQUEST, "bad_request", detail);
    // An object: by itself a list would do for a struct, too, and an empty one would say everything.
    if !body.trim_ascii_start().starts_with(b"{") {
        return Err(wrong("the body must be a JSON object".to_owned()));
    }
    serde_json::from_slice(body).map_err(|error| wrong(error.to_string()))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Purge {
    #[serde(default, deserialize_with = "given")]
    question: Option<serde_json::Map<String, Value>>,
}

/// There or not there: `null` is neither, and must not purge everything.
fn given<'de, D: serde::Deserializer<'de>>(value: D) -> Result<Option<serde_json::Map<String, Value>>, D::Error> {
    serde_json::Map::deserialize(value).map(Some)
}

/// One answer, by its question; or, without one, every answer of the route, by raising its generation.
pub(super) async fn purge(_: Authorized, State(admin): State<Admin>, Path(name): Path<String>, body: Bytes) -> Reply {
    let entry = entry(&admin, &name)?;
    let Purge { question } = parse(&body)?;
    let shared = admin.gate.shared();
    let purged = match question {
        None => {
            let generation = shared.store.raise_generation(&name).await.map_err(|error| store_failed(&error))?;
            shared.generation(&name).raise(generation);
            json!({ "purged": "all", "generation": generation })
        }
        Some(question) => {
            if entry.route.per_caller {
                let detail = "answers of this route belong to one caller each: purge all of them";
                return Err(refuse(StatusCode::BAD_REQUEST, "bad_request", detail));
            }
            let key = entry
                .validate
                .key_of(&question)
                .map_err(|refusal| refuse(StatusCode::BAD_REQUEST, refusal.code.word(), refusal.detail.clone()))?;
            shared.purged(&name, &key);
            shared.store.forget(&name, &key).await.map_err(|error| store_failed(&error))?;
            // Again: a flight that took off meanwhile may have read what was still there.
            shared.answers.memory.remove(&key);
            shared.flights.recall(&key);
            json!({ "purged": "one" })
        }
    };
    tracing::info!(target: "tollgate::audit", route = name, %purged, "answers were purged");
    Ok(Json(purged).into_response())
}

/// A caller by its name: the key of that name, where there is one.
fn subject(admin: &Admin, route: &str, caller: &str) -> Digest {
    let has_key = admin.gate.snapshot().config.callers.keys.contains_key(caller);
    lockout::caller(route, caller, has_key)
}

pub(super) async fn lockout(_: Authorized, State(admin): State<Admin>, Path((name, caller)): Path<(String, String)>) -> Reply {
    let entry = entry(&admin, &name)?;
    let Some(config) = &entry.route.lockout else { return Err(no_lockout(&name)) };
    let subject = subject(&admin, &name, &caller);
    let state = admin.gate.shared().store.lockout(&subject, config.rule).await.map_err(|error| store_failed(&error))?;
    let until = state.locked_until.map(|until| Timestamp(until).seconds());
    Ok(Json(json!({ "misses": state.misses, "in_flight": state.in_flight, "locked_until": until, "locks": state.locks }))
        .into_response())
}

pub(super) async fn clear_lockout(
    _: Authorized,
    State(admin): State<Admin>,
    Path((name, caller)): Path<(String, String)>,
) -> Reply {
    let entry = entry(&admin, &name)?;
    if entry.route.lockout.is_none() {
        return Err(no_lockout(&name));
    }
    let subject = subject(&admin, &name, &caller);
    admin.gate.shared().store.clear_lockout(&subject).await.map_err(|error| store_failed(&error))?;
    tracing::info!(target: "tollgate::audit", route = name, "a lockout was cleared");
    Ok(StatusCode::NO_CONTENT.into_response())
}

fn no_lockout(name: &str) -> Response {
    refuse(StatusCode::NOT_FOUND, "not_found", format!("the route {name:?} has no lockout"))
}

pub(super) async fn reload(_: Authorized, State(admin): State<Admin>) -> Reply {
    match reload_config(&admin.gate, &admin.source).await {
        Ok(generation) => Ok(Json(json!({ "generation": generation })).into_response()),
        Err(error @ ReloadError::BuiltIn) => Err(refuse(StatusCode::CONFLICT, "bad_request", error.to_string())),
        Err(error) => Err(refuse(StatusCode::UNPROCESSABLE_ENTITY, "invalid_config", error.to_string())),
    }
}
