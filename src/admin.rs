//! The admin listener: health and metrics for everyone, the API for whoever holds the token.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, Method, Response, StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio_util::task::TaskTracker;
use tower::ServiceExt as _;

use crate::server::Source;
use crate::server::edge::{Body, Handler};
use crate::server::gateway::Gateway;

mod api;
mod health;
mod money;
mod period;
mod switches;
mod token;
mod writes;

use token::Failures;

/// The listener's handler. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Api {
    router: Router,
    tasks: TaskTracker,
}

/// What the handlers share.
#[derive(Clone)]
pub(crate) struct Admin {
    gate: Gateway,
    failures: Arc<Failures>,
    source: Source,
}

impl Api {
    pub(crate) fn new(gate: Gateway, source: Source) -> Self {
        let tasks = gate.shared().tasks.clone();
        let admin = Admin { gate, failures: Arc::default(), source };
        let router = Router::new()
            .route("/healthz", get(|| async { "ok\n" }))
            .route("/readyz", get(health::ready))
            .route("/metrics", get(metrics))
            .route("/v1/status", get(api::status))
            .route("/v1/routes", get(api::routes))
            .route("/v1/switches/{route}", get(switches::get).put(switches::put))
            .route("/v1/answers/{route}/purge", post(api::purge))
            .route("/v1/lockouts/{route}/{caller}", get(api::lockout).delete(api::clear_lockout))
            .route("/v1/spend", get(money::spend))
            .route("/v1/spend/accept-loss", post(money::accept_loss))
            .route("/v1/savings", get(money::savings))
            .route("/v1/writes", get(writes::list))
            .route("/v1/writes/{id}/settle", post(writes::settle))
            .route("/v1/reload", post(api::reload))
            .layer(DefaultBodyLimit::max(64 << 10))
            .with_state(admin);
        Self { router, tasks }
    }
}

impl Handler for Api {
    async fn handle(&self, mut request: http::Request<Incoming>, peer: SocketAddr) -> Response<Body> {
        request.extensions_mut().insert(token::Peer(peer.ip().to_canonical()));
        // A change that was begun is made and logged, whether or not its asker waits for it.
        let is_change = request.method() != Method::GET;
        let answer = self.router.clone().oneshot(request);
        let answered = if is_change { self.tasks.spawn(answer).await } else { Ok(answer.await) };
        let Ok(Ok(answered)) = answered else { return broken() };
        let (head, body) = answered.into_parts();
        match body.collect().await {
            Ok(body) => Response::from_parts(head, Body::new(body.to_bytes())),
            Err(_) => broken(),
        }
    }
}

fn broken() -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    response
}

async fn metrics(State(admin): State<Admin>, _: HeaderMap) -> impl IntoResponse {
    let text = admin.gate.shared().metrics.render();
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)
}
