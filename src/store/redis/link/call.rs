//! A call: a script, its keys, its arguments.

use bytes::Bytes;

use super::super::script::{Script, Time};
use crate::clock::Timestamp;

/// One call, before it is sent.
pub(in super::super) struct Call {
    pub(super) script: &'static Script,
    keys: Vec<String>,
    arguments: Vec<Bytes>,
    /// See [`copied`](Self::copied).
    pub(super) copied: bool,
}

impl Call {
    pub(in super::super) fn new(script: &'static Script) -> Self {
        Self { script, keys: Vec::new(), arguments: Vec::new(), copied: false }
    }

    pub(in super::super) fn key(mut self, key: String) -> Self {
        self.keys.push(key);
        self
    }

    pub(in super::super) fn keys(mut self, keys: impl IntoIterator<Item = String>) -> Self {
        self.keys.extend(keys);
        self
    }

    pub(in super::super) fn arg(mut self, argument: impl Into<Bytes>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    pub(in super::super) fn bytes(self, argument: &[u8]) -> Self {
        self.arg(Bytes::copy_from_slice(argument))
    }

    pub(in super::super) fn number(self, argument: u64) -> Self {
        self.arg(argument.to_string())
    }

    pub(in super::super) fn flag(self, argument: bool) -> Self {
        self.arg(if argument { "1" } else { "0" })
    }

    /// It has worked when a copy of the store has what it has written, too. Keeps the connection waiting.
    pub(in super::super) fn copied(self) -> Self {
        Self { copied: true, ..self }
    }

    /// The command, marked; with the time, if the script is not to take the store's.
    pub(super) fn command(&self, nonce: &str, time: Time, now: Option<Timestamp>) -> redis::Cmd {
        let mut command = redis::cmd("EVALSHA");
        command.arg(self.script.hash(time)).arg(self.keys.len()).arg(&self.keys).arg(nonce);
        for argument in &self.arguments {
            command.arg(argument.as_ref());
        }
        if let Some(now) = now {
            command.arg(now.0);
        }
        command
    }
}
