//! Every way to say no: a stable code, its status, its words, and whether waiting helps.

use std::borrow::Cow;
use std::ops::Deref;
use std::time::Duration;

use http::StatusCode;

use crate::answer::Outcome;

/// Stable codes of the contract. The order is that of the request path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Code {
    NotFound,
    MethodNotAllowed,
    BadRequest,
    SwitchedOff,
    Unauthenticated,
    InvalidQuestion,
    UnknownField,
    DuplicateField,
    CostTooHigh,
    BodyTooLarge,
    RequestTimeout,
    UnsupportedMediaType,
    SlowDown,
    Busy,
    IdempotencyKeyMissing,
    IdempotencyKeyInvalid,
    IdempotencyInProgress,
    IdempotencyKeyReused,
    NotCached,
    TryAgain,
    CircuitOpen,
    BudgetExhausted,
    StoreUnavailable,
    WeakAnswer,
    UpstreamRejected,
    UpstreamDenied,
    UpstreamBusy,
    UpstreamFailed,
    UpstreamTimeout,
    OutcomeUnknown,
    ShuttingDown,
    Internal,
}

/// How many codes there are: the size of a table over them.
pub(crate) const CODES: usize = ALL.len();

#[allow(clippy::enum_glob_use, reason = "all of them")]
const ALL: [Code; Code::Internal as usize + 1] = {
    use Code::*;
    [
        NotFound,
        MethodNotAllowed,
        BadRequest,
        SwitchedOff,
        Unauthenticated,
        InvalidQuestion,
        UnknownField,
        DuplicateField,
        CostTooHigh,
        BodyTooLarge,
        RequestTimeout,
        UnsupportedMediaType,
        SlowDown,
        Busy,
        IdempotencyKeyMissing,
        IdempotencyKeyInvalid,
        IdempotencyInProgress,
        IdempotencyKeyReused,
        NotCached,
        TryAgain,
        CircuitOpen,
        BudgetExhausted,
        StoreUnavailable,
        WeakAnswer,
        UpstreamRejected,
        UpstreamDenied,
        UpstreamBusy,
        UpstreamFailed,
        UpstreamTimeout,
        OutcomeUnknown,
        ShuttingDown,
        Internal,
    ]
};

/// The row of a preset's refusal table: what a client library should make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// Final: the request, the caller or the route is not going to work.
    Stop,
    /// Later.
    Wait,
    /// The provider or the gateway is in trouble.
    Trouble,
}

impl Code {
    /// The code's wire word, its status on routes of one's own shape, its title.
    const fn facts(self) -> (&'static str, u16, &'static str) {
        match self {
            Self::NotFound => ("not_found", 404, "There is no such route"),
            Self::MethodNotAllowed => ("method_not_allowed", 405, "The route does not take this method"),
            Self::BadRequest => ("bad_request", 400, "The request is malformed"),
            Self::SwitchedOff => ("switched_off", 503, "The route is switched off"),
            Self::Unauthenticated => ("unauthenticated", 401, "The caller is not known"),
            Self::InvalidQuestion => ("invalid_question", 400, "The question is invalid"),
            Self::UnknownField => ("unknown_field", 400, "The question has a field the route does not know"),
            Self::DuplicateField => ("duplicate_field", 400, "A field is given twice"),
            Self::CostTooHigh => ("cost_too_high", 400, "The request can never fit the limit"),
            Self::BodyTooLarge => ("body_too_large", 413, "The body is too large"),
            Self::RequestTimeout => ("request_timeout", 408, "The request did not arrive in time"),
            Self::UnsupportedMediaType => ("unsupported_media_type", 415, "The body has the wrong media type"),
            Self::SlowDown => ("slow_down", 429, "Too many requests from this caller"),
            Self::Busy => ("busy", 429, "Too many requests for this route"),
            Self::IdempotencyKeyMissing => ("idempotency_key_missing", 400, "The request has no Idempotency-Key"),
            Self::IdempotencyKeyInvalid => ("idempotency_key_invalid", 400, "The Idempotency-Key is invalid"),
            Self::IdempotencyInProgress => {
                ("idempotency_in_progress", 409, "A request with this Idempotency-Key is being answered")
            }
            Self::IdempotencyKeyReused => ("idempotency_key_reused", 422, "The Idempotency-Key was used for another request"),
            Self::NotCached => ("not_cached", 504, "No stored answer"),
            Self::TryAgain => ("try_again", 503, "Another instance is asking"),
            Self::CircuitOpen => ("circuit_open", 503, "The provider is unwell"),
            Self::BudgetExhausted => ("budget_exhausted", 503, "The budget is used up"),
            Self::StoreUnavailable => ("store_unavailable", 503, "The store is unavailable"),
            Self::WeakAnswer => ("weak_answer", 422, "The provider's answer is too vague to use"),
            Self::UpstreamRejected => ("upstream_rejected", 400, "The provider rejected the question"),
            Self::UpstreamDenied => ("upstream_denied", 502, "The provider refused the gateway"),
            Self::UpstreamBusy => ("upstream_busy", 503, "The provider is busy"),
            Self::UpstreamFailed => ("upstream_failed", 502, "The provider failed"),
            Self::UpstreamTimeout => ("upstream_timeout", 504, "The provider did not answer in time"),
            Self::OutcomeUnknown => ("outcome_unknown", 502, "It was sent, and nobody knows what came of it"),
            Self::ShuttingDown => ("shutting_down", 503, "The gateway is shutting down"),
            Self::Internal => ("internal", 500, "The gateway failed"),
        }
    }

    pub(crate) const fn word(self) -> &'static str {
        self.facts().0
    }

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        ALL.into_iter()
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        ALL.into_iter().find(|code| code.word() == word)
    }

    pub(crate) fn status(self) -> StatusCode {
        StatusCode::from_u16(self.facts().1).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) const fn title(self) -> &'static str {
        self.facts().2
    }

    /// Its row in a preset's refusal table.
    pub(crate) const fn row(self) -> Row {
        match (self, self.facts().1) {
            (Self::SwitchedOff | Self::BudgetExhausted, _) => Row::Stop,
            (_, 429 | 409) => Row::Wait,
            (_, 400..=499) => Row::Stop,
            _ => Row::Trouble,
        }
    }
}

/// The text of an error, for the log.
pub(crate) struct Cause(String);

impl<E: std::fmt::Display> From<E> for Cause {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// One refusal. Its facts are boxed, so that an answer does not carry their weight through every stage.
#[derive(Clone, Debug)]
pub(crate) struct Refusal(Box<Facts>);

/// What a refusal says. `cause` is for the log alone: it never reaches a caller.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    pub(crate) code: Code,
    pub(crate) detail: Cow<'static, str>,
    /// The field of the question that is at fault.
    pub(crate) field: Option<String>,
    pub(crate) reason: Option<Cow<'static, str>>,
    /// How long to wait; only where waiting helps.
    pub(crate) retry_after: Option<Duration>,
    /// The provider's own status, where it says more than the code's.
    pub(crate) status: Option<StatusCode>,
    pub(crate) cause: Option<String>,
    /// What the attempt came to, if bytes may have left: drives breaker, retry and stale answers.
    pub(crate) outcome: Option<Outcome>,
    /// The connection ends with this answer (what is left of the request cannot be read).
    pub(crate) close: bool,
    /// The caller it concerns, if it is that one alone: other callers on its flight are not refused for it.
    pub(crate) its_askers: Option<u128>,
    /// What a write came to, said once more.
    pub(crate) replayed: bool,
}

impl Deref for Refusal {
    type Target = Facts;

    fn deref(&self) -> &Facts {
        &self.0
    }
}

impl Refusal {
    pub(crate) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self(Box::new(Facts {
            code,
            detail: detail.into(),
            field: None,
            reason: None,
            retry_after: None,
            status: None,
            cause: None,
            outcome: None,
            close: false,
            its_askers: None,
            replayed: false,
        }))
    }

    /// A question refused for one of its fields.
    pub(crate) fn field(code: Code, field: impl Into<String>, reason: impl Into<Cow<'static, str>>) -> Self {
        let (field, reason) = (field.into(), reason.into());
        let mut refusal = Self::new(code, format!("`{field}` {reason}"));
        (refusal.0.field, refusal.0.reason) = (Some(field), Some(reason));
        refusal
    }

    #[must_use]
    pub(crate) fn after(mut self, wait: Duration) -> Self {
        self.0.retry_after = Some(self.retry_after.map_or(wait, |known| known.max(wait)));
        self
    }

    #[must_use]
    pub(crate) fn because(mut self, cause: impl Into<Cause>) -> Self {
        self.0.cause = Some(cause.into().0);
        self
    }

    #[must_use]
    pub(crate) fn of(mut self, outcome: Outcome) -> Self {
        self.0.outcome = Some(outcome);
        self
    }

    /// With the provider's own status instead of the code's, unless it speaks of success, as some do of what they reject.
    #[must_use]
    pub(crate) fn with_status(mut self, status: StatusCode) -> Self {
        self.0.status = Some(status).filter(StatusCode::is_client_error);
        self
    }

    /// With this status instead of the code's own.
    #[must_use]
    pub(crate) fn answering(mut self, status: StatusCode) -> Self {
        self.0.status = Some(status);
        self
    }

    /// It was said before: this is a replay.
    #[must_use]
    pub(crate) fn replayed(mut self) -> Self {
        self.0.replayed = true;
        self
    }

    /// The status it has by itself.
    pub(crate) fn own_status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| self.code.status())
    }

    /// What `Retry-After` says. A provider that is busy and names no time may be asked again soon.
    pub(crate) fn wait(&self) -> Option<Duration> {
        self.retry_after.or((self.code == Code::UpstreamBusy).then_some(Duration::from_secs(1)))
    }

    #[must_use]
    pub(crate) fn of_its_asker(mut self, caller: u128) -> Self {
        self.0.its_askers = Some(caller);
        self
    }

    #[must_use]
    pub(crate) fn closing(mut self) -> Self {
        self.0.close = true;
        self
    }

    /// Whether a stale answer may stand in: provider trouble, back-pressure or an open breaker, never a caller's own fault.
    pub(crate) fn is_trouble(&self) -> bool {
        matches!(
            self.code,
            Code::CircuitOpen
                | Code::UpstreamBusy
                | Code::UpstreamFailed
                | Code::UpstreamTimeout
                | Code::Busy
                | Code::TryAgain
                | Code::BudgetExhausted
                | Code::StoreUnavailable
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_contract() {
        assert_eq!(Code::Unauthenticated.row(), Row::Stop);
        assert_eq!(Code::SwitchedOff.row(), Row::Stop);
        assert_eq!(Code::SlowDown.row(), Row::Wait);
        assert_eq!(Code::CircuitOpen.row(), Row::Trouble);
        assert_eq!(Code::UpstreamTimeout.row(), Row::Trouble);
    }

    #[test]
    fn every_code_has_its_place_and_its_word() {
        for (place, code) in ALL.into_iter().enumerate() {
            assert_eq!((code as usize, Code::from_word(code.word())), (place, Some(code)));
        }
    }

    #[test]
    fn the_longest_wait_wins() {
        let refusal = Refusal::new(Code::Busy, "").after(Duration::from_secs(5)).after(Duration::from_secs(2));
        assert_eq!(refusal.retry_after, Some(Duration::from_secs(5)));
    }
}
