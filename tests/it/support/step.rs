//! What the fake upstream does with one call, and scripts of it.

use std::fmt;
use std::time::Duration;

use super::upstream::Recorded;

/// One call's fate: an answer, or something worse.
///
/// ```ignore
/// Step::ok(json!({"results": []}))                  // 200
/// Step::ok(json!({})).status(503).header("retry-after", "2")
/// Step::ok(json!({})).delay(Duration::from_millis(50))
/// Step::ok(json!({})).gated()                       // once the test says `upstream.release(1)`
/// Step::cut(10).chunked()                           // ten bytes of a longer body
/// ```
#[derive(Clone, Debug)]
pub struct Step {
    pub(super) status: u16,
    pub(super) headers: Vec<(String, Vec<u8>)>,
    pub(super) body: Vec<u8>,
    pub(super) delay: Duration,
    pub(super) gated: bool,
    pub(super) chunked: bool,
    pub(super) act: Act,
}

#[derive(Clone, Debug)]
pub(super) enum Act {
    Answer,
    /// Answers what was asked.
    Echo,
    Hang,
    Close,
    /// Likewise, with a reset.
    Reset,
    /// So many bytes of the body, then the end of the connection.
    Cut(usize),
    /// One byte of the body at a time.
    Drip(Duration),
    /// The body is the whole response, then the connection is closed.
    Raw,
}

impl Step {
    fn new(act: Act, body: Vec<u8>) -> Self {
        let headers = vec![("Content-Type".to_owned(), b"application/json".to_vec())];
        Self { status: 200, headers, body, delay: Duration::ZERO, gated: false, chunked: false, act }
    }

    /// 200 with that JSON.
    #[allow(clippy::needless_pass_by_value, reason = "reads better with json!")]
    pub fn ok(json: serde_json::Value) -> Self {
        Self::new(Act::Answer, json.to_string().into_bytes())
    }

    /// 200 with JSON of the request as it came: `method`, `target`, `headers` (pairs), `body`.
    pub fn echo() -> Self {
        Self::new(Act::Echo, Vec::new())
    }

    /// Reads the request, never answers, and keeps the connection.
    pub fn hang() -> Self {
        Self::new(Act::Hang, Vec::new())
    }

    /// Reads the request and closes the connection without a word.
    pub fn close() -> Self {
        Self::new(Act::Close, Vec::new())
    }

    /// Reads the request and resets the connection.
    pub fn reset() -> Self {
        Self::new(Act::Reset, Vec::new())
    }

    /// Sends a whole head and so many bytes of a JSON body that is longer, then closes.
    pub fn cut(at: usize) -> Self {
        let body = format!(r#"{{"results":[{{"formatted":"{}"}}]}}"#, "x".repeat(at));
        Self::new(Act::Cut(at), body.into_bytes())
    }

    /// Sends the head at once and then one byte of the body every so often.
    pub fn drip(body: impl Into<Vec<u8>>, every: Duration) -> Self {
        Self::new(Act::Drip(every), body.into())
    }

    /// Sends these bytes in place of a response, whatever they are, then closes.
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::new(Act::Raw, bytes.into())
    }

    pub fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// Sets a header; `Content-Type` is JSON unless it is set.
    pub fn header(mut self, name: &str, value: impl Into<Vec<u8>>) -> Self {
        if name.eq_ignore_ascii_case("content-type") {
            self.headers.retain(|(n, _)| !n.eq_ignore_ascii_case(name));
        }
        self.headers.push((name.to_owned(), value.into()));
        self
    }

    pub fn body(mut self, body: impl Into<Vec<u8>>) -> Self {
        self.body = body.into();
        self
    }

    /// Waits before the first byte of the answer.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Waits for the test to let it go.
    pub fn gated(mut self) -> Self {
        self.gated = true;
        self
    }

    /// Chunked, instead of a Content-Length.
    pub fn chunked(mut self) -> Self {
        self.chunked = true;
        self
    }
}

/// What happens call after call.
pub enum Script {
    /// One step a call; the last is repeated.
    Steps(Vec<Step>),
    /// Decided by what was asked.
    By(Box<dyn Fn(&Recorded) -> Step + Send + Sync>),
}

impl Script {
    /// Decides each call by what was asked.
    pub fn by(decide: impl Fn(&Recorded) -> Step + Send + Sync + 'static) -> Self {
        Self::By(Box::new(decide))
    }

    /// H-03: the first request on each connection is answered, the second closes it when it has been received.
    pub fn close_on_reuse(step: Step) -> Self {
        Self::by(move |recorded| if recorded.nth_on_connection == 1 { step.clone() } else { Step::close() })
    }

    /// The step of a call, the `nth` (from 0) of this script.
    pub(super) fn step(&self, nth: usize, recorded: &Recorded) -> Step {
        match self {
            Self::Steps(steps) => steps.get(nth).or(steps.last()).expect("a script has a step").clone(),
            Self::By(decide) => decide(recorded),
        }
    }
}

impl fmt::Debug for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Steps(steps) => f.debug_list().entries(steps).finish(),
            Self::By(_) => f.write_str("By(..)"),
        }
    }
}

impl From<Step> for Script {
    fn from(step: Step) -> Self {
        Self::Steps(vec![step])
    }
}

impl<const N: usize> From<[Step; N]> for Script {
    fn from(steps: [Step; N]) -> Self {
        Self::Steps(steps.into())
    }
}

impl From<Vec<Step>> for Script {
    fn from(steps: Vec<Step>) -> Self {
        Self::Steps(steps)
    }
}
