//! Every outcome becomes HTTP here, and nowhere else.

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode, header};
use serde_json::json;

use super::edge::Body;
use crate::answer::{Answer, Outcome, Source};
use crate::call::{Journey, RequestId};
use crate::clock::seconds_up;
use crate::provider::refusals::Shaped;
use crate::refusal::{Code, Refusal};
use crate::route::Route;

static CACHE_STATUS: HeaderName = HeaderName::from_static("cache-status");
static PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");
static IDEMPOTENT_REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");
static RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
static RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Nobody downstream keeps what is accounted for here.
static NO_STORE: HeaderValue = HeaderValue::from_static("private, no-store");
static PROBLEM: HeaderValue = HeaderValue::from_static("application/problem+json");
static JSON: HeaderValue = HeaderValue::from_static("application/json");

/// What an answer turns into where the route does not pass it on as it is.
pub(crate) fn judge(route: &Route, answer: Answer) -> Result<Answer, Refusal> {
    let refusal = match answer.kept.outcome {
        Outcome::Weak if route.refuse_weak => Refusal::new(Code::WeakAnswer, "the provider's answer is too vague to use"),
        Outcome::Rejected if !route.native => {
            Refusal::new(Code::UpstreamRejected, "the provider rejected the question").with_status(answer.kept.status)
        }
        _ => return Ok(answer),
    };
    Err(if answer.source == Source::Replay { refusal.replayed() } else { refusal })
}

/// An answer as it leaves.
pub(crate) fn answer(route: &Route, answer: &Answer, journey: &Journey) -> Response<Body> {
    let kept = &*answer.kept;
    let shape = route.reply.as_ref().filter(|_| answer.source != Source::Curated);
    let shaped = shape.and_then(|reply| reply.shape(&kept.body));
    let is_shaped = shaped.is_some();
    let mut response = Response::new(Body::new(shaped.map_or_else(|| kept.body.clone(), Bytes::from)));
    *response.status_mut() = kept.status;
    let headers = response.headers_mut();
    headers.reserve(10);
    for (name, value) in &kept.headers {
        headers.insert(name, value.clone());
    }
    if is_shaped {
        headers.insert(header::CONTENT_TYPE, JSON.clone());
    }
    // On a lockout route nothing may tell a stored or replayed "not found" from a locked caller.
    let silent = route.lockout.is_some() && kept.outcome == Outcome::NotFound;
    if !silent {
        headers.insert(CACHE_STATUS.clone(), cache_status(route, answer));
        if let Source::Cache { at, .. } = answer.source {
            headers.insert(header::AGE, number(kept.age_at(at).as_secs()));
        }
        if answer.source == Source::Replay {
            headers.insert(IDEMPOTENT_REPLAYED.clone(), HeaderValue::from_static("true"));
        }
    }
    common(headers, Some(route), journey);
    response
}

/// RFC 9211. A write is forwarded for its method, whatever is stored.
fn cache_status(route: &Route, answer: &Answer) -> HeaderValue {
    let kept = &*answer.kept;
    match answer.source {
        Source::Upstream { .. } if route.writes.is_some() => HeaderValue::from_static("tollgate; fwd=method"),
        Source::Replay => HeaderValue::from_static("tollgate; hit; detail=replay"),
        Source::Upstream { stored: true } => HeaderValue::from_static("tollgate; fwd=miss; stored"),
        Source::Upstream { stored: false } => HeaderValue::from_static("tollgate; fwd=miss"),
        Source::Joined { .. } => HeaderValue::from_static("tollgate; fwd=miss; collapsed"),
        Source::Curated | Source::Lockout => HeaderValue::from_static("tollgate; hit; detail=curated"),
        Source::Cache { stale, at } => {
            let ttl = kept.fresh_until.since(at).as_secs();
            let over = at.since(kept.fresh_until).as_secs();
            let text = match (stale, kept.outcome) {
                // Not `-0`.
                (true, _) if over == 0 => "tollgate; hit; detail=stale; ttl=0".to_owned(),
                (true, _) => format!("tollgate; hit; detail=stale; ttl=-{over}"),
                (false, Outcome::Answered) => ["tollgate; hit; ttl=", itoa::Buffer::new().format(ttl)].concat(),
                (false, _) => format!("tollgate; hit; detail=negative; ttl={ttl}"),
            };
            HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("tollgate; hit"))
        }
    }
}

/// A refusal as it leaves: in the provider's shape on a native route, else as a problem (RFC 9457).
pub(crate) fn refusal(route: Option<&Route>, refusal: &Refusal, journey: &Journey) -> Response<Body> {
    let native = route.filter(|route| route.native).and_then(|route| route.provider.refusals.as_ref());
    let mut response = match native {
        Some(table) => {
            let Shaped { status, headers, body } = table.shape(refusal);
            let mut response = Response::new(Body::new(body.into()));
            *response.status_mut() = status;
            response.headers_mut().extend(headers);
            response.headers_mut().insert(header::CONTENT_TYPE, JSON.clone());
            let details = format!("tollgate; details=\"{}\"", refusal.code.word());
            if let Ok(details) = HeaderValue::try_from(details) {
                response.headers_mut().insert(PROXY_STATUS.clone(), details);
            }
            response
        }
        None => problem(refusal, journey),
    };
    let headers = response.headers_mut();
    if let Some(wait) = refusal.wait() {
        headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds_up(wait)));
    }
    if refusal.replayed {
        headers.insert(IDEMPOTENT_REPLAYED.clone(), HeaderValue::from_static("true"));
    }
    if refusal.close {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    common(headers, route, journey);
    response
}

fn problem(refusal: &Refusal, journey: &Journey) -> Response<Body> {
    let status = refusal.own_status();
    let code = refusal.code.word();
    let mut body = json!({
        "type": format!("urn:tollgate:{code}"),
        "title": refusal.code.title(),
        "status": status.as_u16(),
        "detail": refusal.detail,
        "code": code,
        "request_id": journey.id.to_string(),
    });
    if let Some(members) = body.as_object_mut() {
        members.extend(refusal.field.as_ref().map(|field| ("field".to_owned(), json!(field))));
        members.extend(refusal.reason.as_ref().map(|reason| ("reason".to_owned(), json!(reason))));
    }
    let mut response = Response::new(Body::new(body.to_string().into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, PROBLEM.clone());
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// What every response carries.
fn common(headers: &mut http::HeaderMap, route: Option<&Route>, journey: &Journey) {
    headers.insert(REQUEST_ID.clone(), written(&journey.id));
    headers.insert(header::CACHE_CONTROL, NO_STORE.clone());
    let limits = route.and_then(|route| route.limits.as_ref());
    if let (Some(limits), Some(remaining)) = (limits, journey.remaining()) {
        headers.insert(RATE_LIMIT_POLICY.clone(), limits.policy.clone());
        headers.insert(RATE_LIMIT.clone(), remaining.clone());
    }
}

/// As `HeaderValue::from`, with one allocation instead of two: every hit says its age.
fn number(number: u64) -> HeaderValue {
    HeaderValue::from_str(itoa::Buffer::new().format(number)).unwrap_or_else(|_| HeaderValue::from(number))
}

pub(crate) fn written(id: &RequestId) -> HeaderValue {
    match id {
        RequestId::Callers(id) => id.clone(),
        RequestId::Ours(id) => {
            let text = id.hyphenated().encode_lower(&mut uuid::Uuid::encode_buffer()).to_owned();
            HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("-"))
        }
    }
}

/// The longest request id of a caller's own that is taken over.
const LONGEST_ID: usize = 64;

/// The caller's request id if it is a short printable one, else a new one.
pub(crate) fn request_id(headers: &http::HeaderMap) -> RequestId {
    let own = headers
        .get(&REQUEST_ID)
        .filter(|id| !id.is_empty() && id.len() <= LONGEST_ID && id.as_bytes().iter().all(u8::is_ascii_graphic));
    own.map_or_else(|| RequestId::Ours(uuid::Uuid::new_v4()), |id| RequestId::Callers(id.clone()))
}

/// How long until a draining gateway's successor may be there.
pub(crate) const TRY_SUCCESSOR: Duration = Duration::from_secs(1);
