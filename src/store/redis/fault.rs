//! What went wrong, and with what: one call, or the connection.

use std::error::Error;

use redis::{ErrorKind, RedisError, ServerErrorKind};

use super::super::StoreError;

const WRONG_PASSWORD: &str = "user or password is wrong or missing";

/// An error, told apart by what it says of the calls to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// This call failed; the next may not.
    Call(StoreError),
    /// The store is full: what needs no room still works.
    Full,
    /// The script is not there. It has not run.
    NoScript,
    /// Whoever answers here is of no use now: gone, starting, or no longer the one that writes.
    Link(StoreError),
}

impl Fault {
    /// The words for logs: the store's own code, never what else it says, for that may hold a key or a password.
    pub(super) fn of(error: &RedisError) -> Self {
        let kind = error.kind();
        let code = error.code().unwrap_or_default();
        match kind {
            ErrorKind::Server(ServerErrorKind::NoScript) => Self::NoScript,
            ErrorKind::Extension if code == "OOM" => Self::Full,
            ErrorKind::Server(
                ServerErrorKind::ReadOnly
                | ServerErrorKind::BusyLoading
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ClusterDown,
            ) => Self::Link(failed(code)),
            ErrorKind::AuthenticationFailed => Self::Link(failed(WRONG_PASSWORD)),
            ErrorKind::Extension if matches!(code, "NOAUTH" | "WRONGPASS") => Self::Link(failed(WRONG_PASSWORD)),
            // Copies are missing, the disk refuses, somebody's script runs on and on.
            ErrorKind::Extension if matches!(code, "NOREPLICAS" | "MISCONF" | "BUSY") => Self::Link(failed(code)),
            ErrorKind::Server(_) | ErrorKind::Extension => Self::Call(failed(code)),
            _ if error.is_timeout() => Self::Link(StoreError::Timeout),
            ErrorKind::Io if error.is_connection_refusal() => Self::Link(failed("connection refused")),
            ErrorKind::Io if error.is_connection_dropped() => Self::Link(failed("connection lost")),
            ErrorKind::Io => Self::Link(failed(&io_words(error))),
            _ => Self::Link(failed(error.category())),
        }
    }

    /// Says which script it was, where that matters.
    pub(super) fn of_script(self, name: &str) -> Self {
        match self {
            Self::Call(StoreError::Failed(text)) => Self::Call(StoreError::Failed(format!("{text} ({name})"))),
            other => other,
        }
    }

    pub(super) fn error(self) -> StoreError {
        match self {
            Self::Call(error) | Self::Link(error) => error,
            Self::Full => failed("OOM: it is full"),
            Self::NoScript => failed("NOSCRIPT"),
        }
    }
}

/// The system's or the TLS library's own words: a name that is not found, a certificate that is not trusted.
fn io_words(error: &RedisError) -> String {
    if error.source().is_some() { error.to_string() } else { error.category().to_owned() }
}

/// The error in the words of a log line.
pub(super) fn failed(what: &str) -> StoreError {
    StoreError::Failed(format!("Redis: {what}"))
}

/// An answer to another question, or to none: a reply was lost on the way, and all that follow are late by one.
pub(super) fn out_of_step() -> StoreError {
    failed("a reply that is not to this question")
}

/// There is no connection now.
pub(super) fn away() -> StoreError {
    failed("away")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the server's own words are taken for.
    fn fault(words: &str) -> Fault {
        let reply = redis::parse_redis_value(format!("-{words} secret-key 'user@example.org'\r\n").as_bytes());
        let error = reply.and_then(redis::Value::extract_error).expect_err("it is an error");
        Fault::of(&error)
    }

    #[test]
    fn o_03_who_is_of_no_use_is_left_and_who_only_refuses_is_not() {
        for gone in ["READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "MISCONF", "BUSY", "NOAUTH", "WRONGPASS"] {
            assert!(matches!(fault(gone), Fault::Link(_)), "{gone}");
        }
        for refused in ["ERR", "NOPERM", "WRONGTYPE", "CROSSSLOT", "MOVED"] {
            assert!(matches!(fault(refused), Fault::Call(_)), "{refused}");
        }
        assert_eq!((fault("OOM"), fault("NOSCRIPT")), (Fault::Full, Fault::NoScript));
    }

    #[test]
    fn only_the_code_is_repeated() {
        assert_eq!(fault("ERR").of_script("TAKE").error(), failed("ERR (TAKE)"));
        assert_eq!(fault("LOADING").of_script("TAKE").error(), failed("LOADING"));
    }
}
