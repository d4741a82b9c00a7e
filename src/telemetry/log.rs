//! Logs: one line a request, in text or JSON, to standard error.
//!
//! `TOLLGATE_LOG` is a filter (`info` unless set; `warn` silences the request lines), `TOLLGATE_LOG_FORMAT=json` the other form.
//! A line holds names of ours and digests, never a question, an address or a credential. Of other crates there are warnings
//! and errors only, whatever the filter says.

use std::time::Duration;

use tracing::{Level, Metadata};
use tracing_appender::non_blocking::WorkerGuard;
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, fmt, registry};

use crate::answer::{Answer, Outcome};
use crate::call::Journey;
use crate::refusal::Refusal;

/// Sets up logging for a whole process. What is returned writes out the rest when it is dropped.
///
/// Lines are written by a thread of their own, so that a slow terminal does not hold up requests; when it falls far behind,
/// lines are dropped, not requests.
pub fn start() -> WorkerGuard {
    let filter = EnvFilter::try_from_env("TOLLGATE_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let (writer, guard) = tracing_appender::non_blocking(std::io::stderr());
    let format = fmt::layer().with_writer(writer).with_ansi(false);
    let format = if std::env::var("TOLLGATE_LOG_FORMAT").is_ok_and(|format| format == "json") {
        format.json().flatten_event(true).boxed()
    } else {
        format.boxed()
    };
    // Both must let a line pass, so no filter, however exact, opens the other one.
    let _ = registry().with(filter).with(filter_fn(may_be_said)).with(format).try_init();
    guard
}

/// Below us, other crates may print what they were given: headers, URLs, keys. They say no more than warnings.
fn may_be_said(line: &Metadata<'_>) -> bool {
    let ours = line.target().split("::").next() == Some("tollgate");
    ours || *line.level() <= Level::WARN
}

/// What one line says, beside the journey.
pub(crate) struct Line<'a> {
    pub(crate) route: &'a str,
    pub(crate) method: &'a http::Method,
    pub(crate) status: u16,
    pub(crate) took: Duration,
    pub(crate) journey: &'a Journey,
}

impl Line<'_> {
    pub(crate) fn answered(&self, answer: &Answer) {
        self.write(answer.kept.outcome.word(), answer.source.word(), "", None);
    }

    pub(crate) fn refused(&self, refusal: &Refusal) {
        self.write(refusal.outcome.map_or("refused", Outcome::word), "refusal", refusal.code.word(), refusal.cause.as_deref());
    }

    fn write(&self, outcome: &str, answered_by: &str, code: &str, cause: Option<&str>) {
        let journey = self.journey;
        let caller = journey.caller().map_or_else(|| "-".to_owned(), |caller| format!("{:08x}", caller.id >> 96));
        tracing::info!(
            target: "tollgate::request",
            id = %journey.id,
            method = %self.method,
            route = self.route,
            caller,
            status = self.status,
            outcome,
            answered_by,
            code,
            attempts = journey.attempts(),
            total_us = micros(self.took),
            upstream_us = journey.upstream_micros(),
            store_us = micros(journey.store_time()),
            store_calls = journey.store_calls(),
            cause,
            "request"
        );
    }
}

/// Whether request lines are wanted at all: asked once a request, before anything is put together.
pub(crate) fn wanted() -> bool {
    tracing::enabled!(target: "tollgate::request", tracing::Level::INFO)
}

fn micros(duration: Duration) -> u64 {
    crate::clock::micros(duration)
}
