//! The hooks listener: where providers tell what they know. It may face the internet.
//!
//! One call, `POST /google-budget`: pushes of Google Cloud's budget notifications. Who does not show the subscription's token is
//! told 401, a token of another account 403, before a body is read. Everything that can be dealt with is answered 204, what cannot be
//! read included, for whatever is not acknowledged comes again for days; 503 is for what should come again.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;

use crate::clock::Clock;
use crate::jwks::Jwks;
use crate::server::edge::{Body, Handler};
use crate::server::gateway::Gateway;
use crate::shared::Shared;

mod amount;
mod config;
mod envelope;
mod google_budget;
mod notice;
mod periods;
mod stop;
mod token;
mod words;

pub(crate) use config::Config;
pub(crate) use google_budget::Hook;

use google_budget::{Budgets, MAKER, Told};
use token::{Stranger, Tokens};

const PATH: &str = "/google-budget";
/// No notice is as long as that.
const MAX_BODY: usize = 64 << 10;

/// The listener's handler. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Hooks {
    gate: Gateway,
    budgets: Budgets,
}

/// What a config makes of its hooks; the keys known before are kept.
pub(crate) fn build(config: Option<&Config>, shared: &Shared, before: Option<&Hook>) -> Result<Option<Arc<Hook>>, String> {
    let Some(config) = config.and_then(|config| config.google_budget.as_ref()) else { return Ok(None) };
    let clock: Clock = shared.clock.clone();
    let before = before.map(|hook| hook.tokens.keys());
    // Not fetched before they are needed: a start must not wait for Google.
    let keys = Jwks::open(&config.jwks, clock.clone(), shared.tasks.clone(), before)?;
    Ok(Some(Arc::new(Hook { tokens: Tokens::new(config, keys, clock), order: config.order.clone() })))
}

impl Hooks {
    pub(crate) fn new(gate: Gateway) -> Self {
        Self { gate, budgets: Budgets::default() }
    }

    async fn google_budget(&self, hook: Arc<Hook>, request: Request<Incoming>) -> Response<Body> {
        let shared = self.gate.shared();
        let count = |result| shared.metrics.hook(MAKER, result);
        let (head, body) = request.into_parts();
        match hook.tokens.check(&head.headers).await {
            Ok(()) => {}
            Err(Stranger::Unknown(why)) => {
                tracing::info!(why, "a push without the subscription's token");
                count("unauthenticated");
                let challenge = (header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
                return closing(respond(StatusCode::UNAUTHORIZED, [challenge]));
            }
            Err(Stranger::Another(why)) => {
                tracing::warn!(why, "a push of another account");
                count("forbidden");
                return closing(respond(StatusCode::FORBIDDEN, []));
            }
        }
        let patience = self.gate.snapshot().config.server.body_timeout;
        let body = match read(body, patience).await {
            Ok(Some(body)) => body,
            Ok(None) => {
                tracing::warn!("a push too large for a budget's notice; it is acknowledged");
                count(Told::Malformed.word());
                return respond(StatusCode::NO_CONTENT, []);
            }
            Err(status) => return closing(respond(status, [])),
        };
        // What was begun is done, whether or not Google waits for it.
        let (own, shared_too) = (self.clone(), Arc::clone(shared));
        let taken = shared.tasks.spawn(async move { own.budgets.take(&shared_too, &hook.order, &body).await }).await;
        match taken {
            Ok(Ok(told)) => {
                count(told.word());
                respond(StatusCode::NO_CONTENT, [])
            }
            Ok(Err(error)) => {
                tracing::error!(%error, "a budget's notice could not be heeded; it will come again");
                count("store_unavailable");
                again()
            }
            Err(_) => respond(StatusCode::INTERNAL_SERVER_ERROR, []),
        }
    }
}

impl Handler for Hooks {
    async fn handle(&self, request: Request<Incoming>, _peer: SocketAddr) -> Response<Body> {
        let hook = self.gate.snapshot().google_budget.clone().filter(|_| request.uri().path() == PATH);
        let Some(hook) = hook else { return closing(respond(StatusCode::NOT_FOUND, [])) };
        if request.method() != Method::POST {
            let allow = (header::ALLOW, HeaderValue::from_static("POST"));
            return closing(respond(StatusCode::METHOD_NOT_ALLOWED, [allow]));
        }
        if self.gate.is_draining() {
            return closing(again());
        }
        self.google_budget(hook, request).await
    }
}

/// The body; none, if it is too large: then it is read to its end and forgotten, so that the answer is heard.
async fn read(mut body: Incoming, patience: Duration) -> Result<Option<Bytes>, StatusCode> {
    let whole = async {
        let (mut bytes, mut fits) = (BytesMut::new(), true);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| StatusCode::BAD_REQUEST)?.into_data() else { continue };
            fits &= bytes.len().saturating_add(data.len()) <= MAX_BODY;
            if fits {
                bytes.extend_from_slice(&data);
            }
        }
        Ok(fits.then(|| bytes.freeze()))
    };
    tokio::time::timeout(patience, whole).await.unwrap_or(Err(StatusCode::REQUEST_TIMEOUT))
}

fn respond<const N: usize>(status: StatusCode, headers: [(HeaderName, HeaderValue); N]) -> Response<Body> {
    let mut response = Response::new(Body::default());
    *response.status_mut() = status;
    response.headers_mut().extend(headers.map(|(name, value)| (Some(name), value)));
    response
}

/// It is to be sent again.
fn again() -> Response<Body> {
    respond(StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, HeaderValue::from_static("1"))])
}

/// Ends the connection: the body was not read.
fn closing(mut response: Response<Body>) -> Response<Body> {
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}
