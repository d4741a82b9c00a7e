//! Answers on the wire, whole or as a fault wants them.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream::{self, Stream};
use http::{Response, header};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;

use super::answer::Answer;
use super::fault::Fault;

/// The body of every answer.
pub type Body = UnsyncBoxBody<Bytes, Broken>;

/// The body ends here, and the connection with it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("cut off")]
pub struct Broken;

/// One thing that happens while a body is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    Send(Bytes),
    Wait(Duration),
    Break,
    Hang,
}

/// An answer as it should be.
pub fn whole(answer: Answer) -> Response<Body> {
    let body = Full::new(answer.body.clone()).map_err(|never: Infallible| match never {}).boxed_unsync();
    respond(answer, body)
}

/// An answer that is cut, dripped or never ends.
pub fn faulty(mut answer: Answer, fault: &Fault) -> Response<Body> {
    if fault.cut.or(fault.cut_chunked).is_none() && fault.drip.is_none() {
        return whole(answer);
    }
    if fault.cut_chunked.is_none() {
        let length = answer.body.len().to_string();
        answer = answer.with(header::CONTENT_LENGTH, &length);
    }
    let body = StreamBody::new(frames(steps(&answer.body, fault))).boxed_unsync();
    respond(answer, body)
}

fn respond(answer: Answer, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = answer.status;
    *response.headers_mut() = answer.headers;
    response
}

fn steps(body: &Bytes, fault: &Fault) -> VecDeque<Step> {
    let cut = fault.cut.or(fault.cut_chunked);
    let mut rest = body.slice(..cut.unwrap_or(body.len()).min(body.len()));
    let mut steps = VecDeque::new();
    while !rest.is_empty() {
        let size = fault.drip.map_or(rest.len(), |drip| drip.bytes.clamp(1, rest.len()));
        if let (Some(drip), false) = (fault.drip, steps.is_empty()) {
            steps.push_back(Step::Wait(drip.every.0));
        }
        steps.push_back(Step::Send(rest.split_to(size)));
    }
    match cut {
        Some(_) if fault.hang => steps.push_back(Step::Hang),
        Some(_) => steps.push_back(Step::Break),
        None => {}
    }
    steps
}

fn frames(steps: VecDeque<Step>) -> impl Stream<Item = Result<Frame<Bytes>, Broken>> + Send {
    stream::unfold(steps, |mut steps| async move {
        loop {
            match steps.pop_front()? {
                Step::Send(bytes) => return Some((Ok(Frame::data(bytes)), steps)),
                Step::Wait(time) => tokio::time::sleep(time).await,
                Step::Hang => std::future::pending().await,
                Step::Break => {
                    // What was sent so far is written out while this waits.
                    tokio::task::yield_now().await;
                    return Some((Err(Broken), steps));
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn steps_of(fault: serde_json::Value) -> Vec<Step> {
        let fault = serde_json::from_value(fault).unwrap();
        steps(&Bytes::from_static(b"hello"), &fault).into()
    }

    fn send(text: &'static str) -> Step {
        Step::Send(Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_cut_body_breaks_off_or_hangs() {
        assert_eq!(steps_of(json!({"cut": 2})), [send("he"), Step::Break]);
        assert_eq!(steps_of(json!({"cut_chunked": 99})), [send("hello"), Step::Break]);
        assert_eq!(steps_of(json!({"cut": 0, "hang": true})), [Step::Hang]);
    }

    #[test]
    fn a_dripped_body_comes_in_pieces() {
        let wait = Step::Wait(Duration::from_millis(50));
        let drip = json!({"bytes": 2, "every": "50ms"});
        assert_eq!(steps_of(json!({"drip": drip})), [send("he"), wait.clone(), send("ll"), wait.clone(), send("o")]);
        assert_eq!(steps_of(json!({"drip": drip, "cut": 3})), [send("he"), wait, send("l"), Step::Break]);
    }
}
