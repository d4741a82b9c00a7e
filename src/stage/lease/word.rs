//! What a flight leaves to those who wait for it in other instances: an answer that is not kept, or a failure.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::StatusCode;
use serde::{Deserialize, Serialize};

use crate::answer::{Answer, Kept, Outcome, Source};
use crate::clock::{Timestamp, micros};
use crate::refusal::{Code, Refusal};
use crate::stage::Verdict;
use crate::store::StoredAnswer;

#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Word {
    Answer { status: u16, outcome: String, headers: Vec<(String, String)>, stored: u64, age: u64, body: String },
    Refusal { code: String, detail: String, outcome: Option<String>, status: Option<u16>, retry_after: Option<u64> },
}

pub(super) fn answer(answer: &Answer) -> Bytes {
    let stored = answer.kept.to_stored();
    let text = |(name, value): (String, Bytes)| Some((name, String::from_utf8(value.into()).ok()?));
    write(&Word::Answer {
        status: stored.status,
        outcome: stored.outcome,
        headers: stored.headers.into_iter().filter_map(text).collect(),
        stored: stored.stored.0,
        age: micros(stored.age),
        body: STANDARD.encode(&stored.body),
    })
}

pub(super) fn refusal(refusal: &Refusal) -> Bytes {
    write(&Word::Refusal {
        code: refusal.code.word().to_owned(),
        detail: refusal.detail.to_string(),
        outcome: refusal.outcome.map(|outcome| outcome.word().to_owned()),
        status: refusal.status.map(|status| status.as_u16()),
        retry_after: refusal.retry_after.map(micros),
    })
}

fn write(word: &Word) -> Bytes {
    serde_json::to_vec(word).unwrap_or_default().into()
}

/// Nothing, if it is not what we would have written.
pub(super) fn read(word: &[u8]) -> Option<Verdict> {
    match serde_json::from_slice(word).ok()? {
        Word::Answer { status, outcome, headers, stored, age, body } => {
            let stored = Timestamp(stored);
            let kept = Kept::from_stored(StoredAnswer {
                status,
                outcome,
                headers: headers.into_iter().map(|(name, value)| (name, value.into())).collect(),
                body: STANDARD.decode(body).ok()?.into(),
                stored,
                age: Duration::from_micros(age),
                fresh_until: stored,
                revalidate_until: stored,
                error_until: stored,
            })?;
            Some(Ok(Answer { kept: Arc::new(kept), source: Source::Joined { stored: false } }))
        }
        Word::Refusal { code, detail, outcome, status, retry_after } => {
            let mut refusal = Refusal::new(Code::from_word(&code)?, detail);
            if let Some(outcome) = outcome {
                refusal = refusal.of(Outcome::from_word(&outcome)?);
            }
            if let Some(status) = status {
                refusal = refusal.with_status(StatusCode::from_u16(status).ok()?);
            }
            if let Some(wait) = retry_after {
                refusal = refusal.after(Duration::from_micros(wait));
            }
            Some(Err(refusal.because("another instance's call")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_reads_back_for_those_who_waited() {
        let mut kept = Kept::passing(StatusCode::OK, Outcome::Weak, vec![0, 159, 146, 150].into(), Timestamp(7));
        kept.headers.push((http::header::CONTENT_TYPE, "text/x".parse().unwrap()));
        let word = answer(&Answer { kept: Arc::new(kept), source: Source::Upstream { stored: false } });
        let read = read(&word).unwrap().unwrap();
        assert_eq!(
            (read.kept.status, read.kept.outcome, read.source),
            (StatusCode::OK, Outcome::Weak, Source::Joined { stored: false })
        );
        assert_eq!((&read.kept.body[..], read.kept.headers.len()), (&[0, 159, 146, 150][..], 1));
        assert!(!read.kept.is_fresh(Timestamp(7)));
    }

    #[test]
    fn a_failure_reads_back_with_its_cause_and_its_wait() {
        let failure = Refusal::new(Code::UpstreamRejected, "no").of(Outcome::Rejected).with_status(StatusCode::CONFLICT);
        let refused = read(&refusal(&failure.after(Duration::from_millis(1500)))).unwrap().unwrap_err();
        assert_eq!(
            (refused.code, refused.outcome, refused.status),
            (failure_code(), Some(Outcome::Rejected), Some(StatusCode::CONFLICT))
        );
        assert_eq!((refused.retry_after, &*refused.detail), (Some(Duration::from_millis(1500)), "no"));
    }

    fn failure_code() -> Code {
        Code::UpstreamRejected
    }

    #[test]
    fn nonsense_is_no_word() {
        for nonsense in [&b""[..], b"{}", b"{\"kind\":\"refusal\"}", b"\xff"] {
            assert!(read(nonsense).is_none());
        }
    }
}
