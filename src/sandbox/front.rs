//! Every request comes in here: the sandbox's own paths, or a call to a provider with whatever fault is set for it.

use std::sync::Arc;

use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use serde_json::json;

use super::answer::Answer;
use super::asked::Asked;
use super::control;
use super::deliver::{self, Body};
use super::fault::board::Board;
use super::fault::{Fault, Malformed};
use super::meter::Meter;
use super::provider::{Provider, Providers, stripe};
use crate::clock::Clock;

/// No request is longer.
const MOST_BYTES: usize = 1024 * 1024;
const PAGE: &str =
    "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n";

/// No answer: the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Gone {
    /// In order.
    #[error("closed without an answer")]
    Closed,
    /// With a reset.
    #[error("reset without an answer")]
    Reset,
}

/// What all connections share.
#[derive(Debug)]
pub struct Front {
    /// The calls so far.
    pub meter: Arc<Meter>,
    /// The faults that are set.
    pub board: Arc<Board>,
    providers: Providers,
}

impl Front {
    /// A front with these faults, and providers that remember nothing yet.
    pub fn new(board: Board, clock: Clock) -> Self {
        Self { meter: Arc::default(), board: Arc::new(board), providers: Providers::new(clock) }
    }

    /// Answers one request, or ends its connection.
    pub async fn handle(&self, request: Request<Incoming>) -> Result<Response<Body>, Gone> {
        let (head, body) = request.into_parts();
        let mut asked = Asked::head(head.method, &head.uri, head.headers);
        let provider = Provider::of(&asked.path);
        let fault = provider.and_then(|provider| self.board.next(provider, &asked.path)).unwrap_or_default();
        if let (Some(provider), true) = (provider, fault.refuse) {
            self.meter.count(provider, &provider.question(&asked), 0);
            return Err(Gone::Reset);
        }
        match Limited::new(body, MOST_BYTES).collect().await {
            Ok(body) => asked.body = body.to_bytes(),
            Err(wrong) if wrong.is::<hyper::Error>() => return Err(Gone::Closed),
            Err(_) => return Ok(deliver::whole(refused(StatusCode::PAYLOAD_TOO_LARGE, "longer than 1 MiB"))),
        }
        match provider {
            Some(provider) => self.call(provider, &asked, &fault).await,
            None => Ok(deliver::whole(control::answer(self, &asked))),
        }
    }

    async fn call(&self, provider: Provider, asked: &Asked, fault: &Fault) -> Result<Response<Body>, Gone> {
        let taken = self.providers.take(asked);
        let answer = self.answer(provider, asked, fault, taken.is_some());
        self.meter.count(provider, &provider.question(asked), answer.units);
        if let Some(delay) = fault.delay {
            tokio::time::sleep(delay.0).await;
        }
        match fault {
            Fault { close: true, .. } => Err(Gone::Closed),
            Fault { reset: true, .. } => Err(Gone::Reset),
            Fault { hang: true, cut: None, cut_chunked: None, .. } => std::future::pending().await,
            _ => Ok(deliver::faulty(answer, fault)),
        }
    }

    /// The provider's answer, with what the fault puts in its place.
    fn answer(&self, provider: Provider, asked: &Asked, fault: &Fault, free: bool) -> Answer {
        let mut answer = match fault.status() {
            Some(status) if status.as_u16() >= 400 => provider.failure(status),
            _ if !free => stripe::in_use(),
            _ => self.providers.answer(provider, asked),
        };
        answer.status = fault.status().unwrap_or(answer.status);
        match &fault.body {
            Some(serde_json::Value::String(text)) => answer.body = text.clone().into(),
            Some(other) => answer.body = other.to_string().into(),
            None => {}
        }
        match fault.malformed {
            Some(Malformed::Json) => answer.body.truncate(answer.body.len() / 2),
            Some(Malformed::Html) => {
                answer.body = PAGE.into();
                answer = answer.with(header::CONTENT_TYPE, "text/html");
            }
            None => {}
        }
        with_headers(answer, fault)
    }
}

fn with_headers(mut answer: Answer, fault: &Fault) -> Answer {
    if let Some(content_type) = &fault.content_type {
        answer = answer.with(header::CONTENT_TYPE, content_type);
    }
    for (name, value) in &fault.headers {
        if let Ok(name) = name.parse() {
            answer = answer.with(name, value);
        }
    }
    for value in fault.retry_after.0.iter().filter_map(|value| value.parse().ok()) {
        answer.headers.append(header::RETRY_AFTER, value);
    }
    answer
}

/// An answer of the sandbox itself that says no.
pub fn refused(status: StatusCode, what: &str) -> Answer {
    Answer::json(status, &json!({"error": what}))
}
