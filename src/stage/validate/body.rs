//! Reads a body: bounded in size and time, and not before the head has been judged.

use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt;

use super::Shared;
use crate::call::{Body, Caller, Request};
use crate::refusal::{Code, Refusal};
use crate::route::Route;

/// What a body is that holds a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Form,
    Json,
}

impl Sort {
    /// Of a route's bodies, if it reads them.
    pub(super) fn of(route: &Route) -> Option<Self> {
        route.reads_body().then(|| if route.reads_json() { Self::Json } else { Self::Form })
    }
}

/// The whole body, where the question stands in it; nothing, where it does not and there is none.
pub(super) async fn read(shared: &Shared, request: &mut Request, caller: &Caller) -> Result<Bytes, Refusal> {
    let route = &*shared.route;
    let headers = &request.head.headers;
    let Some(sort) = shared.body else {
        let empty = match &request.body {
            Body::Incoming(body) => http_body::Body::is_end_stream(body) || announced(headers) == Some(0),
            Body::Whole(bytes) => bytes.is_empty() || announced(headers) == Some(0),
        };
        return if empty {
            Ok(Bytes::new())
        } else {
            Err(Refusal::field(Code::UnknownField, "body", "is not part of this route's question").closing())
        };
    };
    media_type(headers, sort)?;
    if announced(headers).is_some_and(|length| length > route.max_body as u64) {
        return Err(too_large(route.max_body));
    }
    if let Some(limits) = &shared.limits {
        limits.look(caller, &request.journey).await.map_err(Refusal::closing)?;
    }
    let body = std::mem::replace(&mut request.body, Body::Whole(Bytes::new()));
    match body {
        Body::Whole(bytes) => Ok(bytes),
        Body::Incoming(body) => match Box::pin(tokio::time::timeout(shared.body_timeout, collect(body, route.max_body))).await {
            Ok(read) => read,
            Err(_) => Err(Refusal::new(Code::RequestTimeout, "the body did not arrive in time").closing()),
        },
    }
}

fn announced(headers: &HeaderMap) -> Option<u64> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// JSON where the question is JSON, a form where it is a form. A missing type is taken at its word.
fn media_type(headers: &HeaderMap, sort: Sort) -> Result<(), Refusal> {
    if headers.contains_key(header::CONTENT_ENCODING) {
        return Err(Refusal::new(Code::UnsupportedMediaType, "a body in a content coding is not taken").closing());
    }
    let Some(value) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let essence = value.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let (right, wanted) = match sort {
        Sort::Json => (
            essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json")),
            "this route takes application/json",
        ),
        Sort::Form => (essence == "application/x-www-form-urlencoded", "this route takes application/x-www-form-urlencoded"),
    };
    if right { Ok(()) } else { Err(Refusal::new(Code::UnsupportedMediaType, wanted).closing()) }
}

fn too_large(most: usize) -> Refusal {
    Refusal::new(Code::BodyTooLarge, format!("the body is larger than {most} bytes")).closing()
}

async fn collect(mut body: hyper::body::Incoming, most: usize) -> Result<Bytes, Refusal> {
    let mut bytes = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let broken = |error: hyper::Error| Refusal::new(Code::BadRequest, "the body broke off").because(error).closing();
        let Ok(data) = frame.map_err(broken)?.into_data() else { continue };
        if bytes.len() + data.len() > most {
            return Err(too_large(most));
        }
        bytes.extend_from_slice(&data);
    }
    Ok(bytes.freeze())
}
