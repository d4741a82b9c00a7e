//! How the gateway is: ready, degraded (and what that means stage by stage), or not yet, or no more.

use std::collections::BTreeMap;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use serde_json::{Value, json};

use super::Admin;

/// 200 once the store has answered a real operation, from then on with `degraded` while it is away; 503 before, and while
/// draining.
pub(super) async fn ready(State(admin): State<Admin>) -> impl IntoResponse {
    if admin.gate.is_draining() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n".to_owned());
    }
    if !admin.gate.shared().switches.is_known() {
        return (StatusCode::SERVICE_UNAVAILABLE, "the store has not answered yet\n".to_owned());
    }
    match trouble(&admin).await {
        None => (StatusCode::OK, "ready\n".to_owned()),
        Some(trouble) => (StatusCode::OK, format!("degraded\nstore: {trouble}\n{}", in_lines(&policies(&admin)))),
    }
}

/// What is wrong with the store, if something is.
async fn trouble(admin: &Admin) -> Option<String> {
    let store = &admin.gate.shared().store;
    match store.health() {
        Some(health) if health.well => None,
        Some(health) => Some(health.error.unwrap_or_else(|| "away".to_owned())),
        // The embedded one is asked itself: nothing else of it can be away.
        None => store.switches().await.err().map(|error| error.to_string()),
    }
}

/// The store, for `/v1/status`.
pub(super) async fn store(admin: &Admin) -> Value {
    let trouble = trouble(admin).await;
    let health = admin.gate.shared().store.health();
    json!({
        "state": if trouble.is_none() { "ok" } else { "unavailable" },
        "error": trouble,
        "shared": health.is_some(),
        "instances": health.as_ref().map_or(1, |health| health.instances),
        "warnings": health.map(|health| health.warnings).unwrap_or_default(),
        "without_it": policies(admin),
    })
}

type Policies = BTreeMap<&'static str, BTreeMap<&'static str, Vec<String>>>;

/// What each stage does without the store, by policy, with the routes that say so.
fn policies(admin: &Admin) -> Policies {
    let mut policies = Policies::new();
    for entry in admin.gate.snapshot().router.entries() {
        for (stage, policy) in entry.route.without_store() {
            policies.entry(stage).or_default().entry(policy).or_default().push(entry.route.name.clone());
        }
    }
    policies.values_mut().flat_map(BTreeMap::values_mut).for_each(|routes| routes.sort());
    policies
}

fn in_lines(policies: &Policies) -> String {
    let line = |(stage, by_policy): (&&str, &BTreeMap<&str, Vec<String>>)| {
        let words: Vec<String> = by_policy.iter().map(|(policy, routes)| format!("{policy} ({})", routes.join(", "))).collect();
        format!("{stage}: {}\n", words.join(", "))
    };
    policies.iter().map(line).collect()
}
