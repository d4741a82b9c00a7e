//! What an admin reports of a write, and the answer that is replayed for it.

use std::time::Duration;

use bytes::Bytes;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::answer::Outcome as Answered;
use crate::clock::Timestamp;
use crate::store::StoredAnswer;
use crate::store::write::Found;

/// The body of a settling.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Report {
    outcome: Outcome,
    status: Option<u16>,
    /// As it was written: an amount or an id in it must not change by being read.
    body: Option<Box<RawValue>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Sent,
    NotSent,
}

/// How long it is remembered that the next send is another one to the provider: longer than providers remember a key of ours.
const TURN_KEPT: Duration = Duration::from_hours(48);

impl Report {
    pub(super) fn was_sent(&self) -> bool {
        matches!(self.outcome, Outcome::Sent)
    }

    pub(super) fn outcome(&self) -> &'static str {
        if self.was_sent() { "sent" } else { "not_sent" }
    }

    /// What is replayed, if anything.
    pub(super) fn status(&self) -> Option<u16> {
        self.was_sent().then(|| self.status.unwrap_or(200))
    }

    /// Why it makes no sense, if it does not.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        let Some(status) = self.status() else {
            let silent = self.status.is_none() && self.body.is_none();
            return if silent { Ok(()) } else { Err("what was not sent has no answer: leave out status and body") };
        };
        match status {
            204 | 205 if !self.content(status).1.is_empty() => Err("an answer of that status has no body"),
            200..=299 | 400..=499 => Ok(()),
            _ => Err("`status` must be that of a final answer: 2xx or 4xx"),
        }
    }

    pub(super) fn found(&self, keep: Duration, now: Timestamp) -> Found {
        let Some(status) = self.status() else { return Found::NotSent(now.after(TURN_KEPT.max(keep))) };
        let (content_type, body) = self.content(status);
        let headers = content_type.map(|value| ("content-type".to_owned(), Bytes::from_static(value.as_bytes())));
        let until = now.after(keep);
        Found::Sent(StoredAnswer {
            status,
            outcome: Answered::Answered.word().to_owned(),
            headers: headers.into_iter().collect(),
            body,
            stored: now,
            age: Duration::ZERO,
            fresh_until: until,
            revalidate_until: until,
            error_until: until,
        })
    }

    /// JSON as it is; of a string its text, which may be JSON itself.
    fn content(&self, status: u16) -> (Option<&'static str>, Bytes) {
        let written = match &self.body {
            Some(body) => body.get(),
            None if matches!(status, 204 | 205) => "\"\"",
            None => "{}",
        };
        let Ok(text) = serde_json::from_str::<String>(written) else { return (Some(JSON), written.to_owned().into()) };
        let structured = text.trim_start().starts_with(['{', '[']) && serde_json::from_str::<IgnoredAny>(&text).is_ok();
        let content_type = if structured { JSON } else { TEXT };
        (Some(content_type).filter(|_| !text.is_empty()), text.into())
    }
}

const JSON: &str = "application/json";
const TEXT: &str = "text/plain; charset=utf-8";

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000_000);

    fn report(text: &str) -> Report {
        serde_json::from_str(text).unwrap()
    }

    /// Status, content type and body of what is replayed.
    fn replayed(text: &str) -> (u16, String, String) {
        let report = report(text);
        report.check().unwrap();
        let Found::Sent(answer) = report.found(Duration::from_secs(5), NOW) else { panic!("{text}") };
        assert_eq!((answer.expires(), answer.is_fresh(NOW)), (NOW.after(Duration::from_secs(5)), true));
        let of = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).unwrap();
        let content_type = answer.headers.first().map(|(_, value)| of(value)).unwrap_or_default();
        (answer.status, content_type, of(&answer.body))
    }

    #[test]
    fn a_body_goes_out_as_it_was_written() {
        let case = |text: &str, status: u16, content_type: &str, body: &str| {
            assert_eq!(replayed(text), (status, content_type.to_owned(), body.to_owned()), "{text}");
        };
        case(r#"{"outcome":"sent"}"#, 200, JSON, "{}");
        case(r#"{"outcome":"sent","status":null,"body":null}"#, 200, JSON, "{}");
        let exact = r#"{"b": 1.10, "a":123456789012345678901234567890}"#;
        case(&format!(r#"{{"outcome":"sent","status":201,"body":{exact}}}"#), 201, JSON, exact);
        case(r#"{"outcome":"sent","body":"{\"id\": 1.0}"}"#, 200, JSON, "{\"id\": 1.0}");
        case(r#"{"outcome":"sent","body":"{ok}"}"#, 200, TEXT, "{ok}");
        case(r#"{"outcome":"sent","body":"17"}"#, 200, TEXT, "17");
        case(r#"{"outcome":"sent","body":17}"#, 200, JSON, "17");
        case(r#"{"outcome":"sent","status":204}"#, 204, "", "");
        case(r#"{"outcome":"sent","status":422,"body":""}"#, 422, "", "");
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for text in [
            r#"{"outcome":"not_sent","status":200}"#,
            r#"{"outcome":"not_sent","body":{}}"#,
            r#"{"outcome":"sent","status":204,"body":{}}"#,
            r#"{"outcome":"sent","status":101}"#,
            r#"{"outcome":"sent","status":302}"#,
            r#"{"outcome":"sent","status":500}"#,
            r#"{"outcome":"sent","status":0}"#,
            r#"{"outcome":"sent","status":65535}"#,
        ] {
            assert!(report(text).check().is_err(), "{text}");
        }
    }

    #[test]
    fn another_turn_is_remembered_longer_than_a_provider_remembers_a_key() {
        let until = |keep| report(r#"{"outcome":"not_sent"}"#).found(keep, NOW);
        assert_eq!(until(Duration::from_secs(5)), Found::NotSent(NOW.after(Duration::from_hours(48))));
        assert_eq!(until(Duration::from_hours(720)), Found::NotSent(NOW.after(Duration::from_hours(720))));
    }
}
