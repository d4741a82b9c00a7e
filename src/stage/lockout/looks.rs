//! What a "not found" looks like on a route: a sample of those seen, for callers who are locked.
//!
//! A sample shows nobody's question: where the provider repeats what was asked there is a blank in it, and a locked caller reads its
//! own question there. What a caller asks is chosen by the caller, so a blank may have been made where no provider puts one:
//! another sample takes the place of the known one only once two different questions have led to it.
//!
//! The store has the first sample of each process, since locks outlive processes, too.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use http::{HeaderValue, StatusCode, header};

use crate::answer::{Answer, Kept, Outcome, Source};
use crate::call::{Journey, Question};
use crate::clock::Clock;
use crate::route::Route;
use crate::store::handle::StoreHandle;
use crate::store::{Digest, StoredAnswer};

/// The looks of one route.
pub(super) struct Looks {
    shown: ArcSwapOption<Sample>,
    /// Seen once, and unlike the one that is shown.
    candidate: Mutex<Option<Arc<Sample>>>,
    /// When the store may be asked again whether it has one.
    ask_at: AtomicU64,
    key: Digest,
    route: Arc<Route>,
    store: StoreHandle,
    clock: Clock,
}

/// One "not found" with blanks for what was asked.
struct Sample {
    kept: Arc<Kept>,
    has_blanks: bool,
    /// What led to it.
    asked: Asked,
}

/// What a question asks, field by field.
#[derive(PartialEq, Eq)]
pub(super) struct Asked(Vec<String>);

/// For as long as there may be a lock, and then some.
const KEPT: Duration = Duration::from_secs(10 * 365 * 86_400);
/// How long a store that has no sample is not asked again.
const ASKED_AGAIN: Duration = Duration::from_secs(10);
/// What is shorter than this stands in a body by chance.
const TELLING: usize = 3;

impl Looks {
    pub(super) fn new(key: Digest, route: &Arc<Route>, store: StoreHandle, clock: Clock) -> Self {
        let (shown, candidate, ask_at) = (ArcSwapOption::empty(), Mutex::default(), AtomicU64::new(0));
        Self { shown, candidate, ask_at, key, route: Arc::clone(route), store, clock }
    }

    /// Remembers an answer for its looks.
    pub(super) async fn remember(&self, journey: &Journey, answer: &Answer, asked: Asked) {
        let first = self.shown.load().is_none();
        if !first && !matches!(answer.source, Source::Upstream { .. }) {
            return;
        }
        let Some(sample) = Sample::of(&answer.kept, asked) else { return };
        let sample = Arc::new(sample);
        if !self.is_believed(&sample) {
            return;
        }
        self.shown.store(Some(Arc::clone(&sample)));
        if first {
            let stored = StoredAnswer { error_until: self.clock.now().after(KEPT), ..sample.kept.to_stored() };
            let _ = self.store.keep(journey, &self.route.name, &self.key, stored).await;
        }
    }

    /// Whether a sample may take the place of the one that is shown.
    fn is_believed(&self, sample: &Arc<Sample>) -> bool {
        let shown = self.shown.load();
        let Some(shown) = shown.as_ref() else { return true };
        if !shown.has_blanks && !sample.has_blanks {
            return true;
        }
        let mut candidate = self.candidate.lock().unwrap_or_else(PoisonError::into_inner);
        let twice = candidate.as_ref().is_some_and(|known| known.is_like(sample) && known.asked != sample.asked);
        *candidate = (!twice && !shown.is_like(sample)).then(|| Arc::clone(sample));
        twice
    }

    /// What a locked caller is answered: the sample, or the plainest there is.
    pub(super) async fn answer(&self, journey: &Journey, asked: &Asked) -> Answer {
        if self.shown.load().is_none() {
            self.read(journey).await;
        }
        let shown = self.shown.load();
        let kept = shown.as_ref().map_or_else(|| Arc::new(self.plain()), |sample| sample.filled(asked));
        Answer { kept, source: Source::Lockout }
    }

    /// Reads the sample an earlier process, or another instance, has left.
    async fn read(&self, journey: &Journey) {
        let now = self.clock.now();
        if now.0 < self.ask_at.load(Ordering::Relaxed) {
            return;
        }
        let stored = self.store.answer(journey, &self.key).await;
        match stored.ok().flatten().and_then(Kept::from_stored) {
            Some(kept) => self.shown.store(Some(Arc::new(Sample::again(kept)))),
            None => self.ask_at.store(now.after(ASKED_AGAIN).0, Ordering::Relaxed),
        }
    }

    fn plain(&self) -> Kept {
        let mut kept = Kept::passing(StatusCode::NOT_FOUND, Outcome::NotFound, "{}".into(), self.clock.now());
        kept.headers.push((header::CONTENT_TYPE, HeaderValue::from_static("application/json")));
        kept
    }
}

impl Sample {
    /// None of an answer that shows what was asked in a way that cannot be made a blank.
    fn of(kept: &Arc<Kept>, asked: Asked) -> Option<Self> {
        let body = String::from_utf8_lossy(&kept.body);
        let blanked = asked.blank(&body)?;
        let has_blanks = blanked != body;
        let kept = if has_blanks { with_body(kept, blanked) } else { Arc::clone(kept) };
        Some(Self { kept, has_blanks, asked })
    }

    /// One that was stored.
    fn again(kept: Kept) -> Self {
        Self { has_blanks: kept.body.contains(&BLANK), kept: Arc::new(kept), asked: Asked(Vec::new()) }
    }

    fn is_like(&self, other: &Self) -> bool {
        let (a, b) = (&*self.kept, &*other.kept);
        a.status == b.status && a.headers == b.headers && a.body == b.body
    }

    fn filled(&self, asked: &Asked) -> Arc<Kept> {
        if !self.has_blanks {
            return Arc::clone(&self.kept);
        }
        with_body(&self.kept, asked.fill(&String::from_utf8_lossy(&self.kept.body)))
    }
}

fn with_body(kept: &Kept, body: String) -> Arc<Kept> {
    let with = Kept::passing(kept.status, kept.outcome, body.into(), kept.stored);
    Arc::new(with.with_headers(kept.headers.clone()))
}

/// Stands on both sides of the number of a field. No JSON has it, nor any text that is shown to people.
const BLANK: u8 = 0;

impl Asked {
    pub(super) fn by(question: &Question) -> Self {
        Self(question.0.iter().map(|value| value.as_ref().map_or_else(String::new, |v| v.asked.text().into_owned())).collect())
    }

    /// The body with a blank for each repetition of what was asked; none if it would show something of it even so.
    fn blank(&self, body: &str) -> Option<String> {
        if body.as_bytes().contains(&BLANK) {
            return None;
        }
        let mut fields: Vec<_> = self.0.iter().enumerate().filter(|(_, text)| text.len() >= TELLING).collect();
        // Some may be part of others.
        fields.sort_by_key(|(_, text)| std::cmp::Reverse(text.len()));
        let blanked = fields.iter().fold(body.to_owned(), |body, (nth, text)| body.replace(&escaped(text), &blank(*nth)));
        let rest = blanked.to_lowercase();
        let shows = fields.iter().any(|(_, text)| rest.contains(&text.to_lowercase()));
        (!shows).then_some(blanked)
    }

    fn fill(&self, body: &str) -> String {
        self.0.iter().enumerate().fold(body.to_owned(), |body, (nth, text)| body.replace(&blank(nth), &escaped(text)))
    }
}

fn blank(nth: usize) -> String {
    let mark = char::from(BLANK);
    format!("{mark}{nth}{mark}")
}

/// As it stands in a JSON string.
fn escaped(text: &str) -> String {
    let quoted = serde_json::Value::from(text).to_string();
    quoted.strip_prefix('"').and_then(|text| text.strip_suffix('"')).unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Timestamp;

    fn asked(fields: &[&str]) -> Asked {
        Asked(fields.iter().map(|&text| text.to_owned()).collect())
    }

    fn sample(body: &str, fields: &[&str]) -> Option<Sample> {
        let kept = Kept::passing(StatusCode::NOT_FOUND, Outcome::NotFound, body.to_owned().into(), Timestamp(0));
        Sample::of(&Arc::new(kept), asked(fields))
    }

    fn filled(sample: &Sample, fields: &[&str]) -> String {
        String::from_utf8(sample.filled(&asked(fields)).body.to_vec()).unwrap()
    }

    #[test]
    fn what_was_asked_becomes_a_blank_and_is_filled_with_what_another_asks() {
        let body = r#"{"error":"no company 12345678 (\"a\"b)","at":"/company/12345678","in":"GB"}"#;
        let known = sample(body, &["GB", "12345678", "\"a\"b", "234"]).unwrap();
        assert_eq!(filled(&known, &["FR", "x\\y", "z"]), r#"{"error":"no company x\\y (z)","at":"/company/x\\y","in":"GB"}"#);
        let other = sample(&body.replace("12345678", "SC000001"), &["GB", "SC000001", "\"a\"b", "234"]).unwrap();
        assert!(known.is_like(&other) && known.has_blanks && known.asked != other.asked);
    }

    #[test]
    fn what_shows_a_question_some_other_way_is_no_sample() {
        assert!(sample("no company sc000001", &["SC000001"]).is_none());
        assert!(sample("no company \0", &["SC000001"]).is_none());
        let plain = sample("no such company", &["SC000001"]).unwrap();
        assert!(!plain.has_blanks && filled(&plain, &["SC000002"]) == "no such company");
    }

    #[test]
    fn a_stored_sample_is_what_it_was() {
        let known = sample("no SC000001", &["SC000001"]).unwrap();
        let again = Sample::again(Kept::from_stored(known.kept.to_stored()).unwrap());
        assert!(again.is_like(&known) && filled(&again, &["SC000002"]) == "no SC000002");
    }
}
