//! Secrets by reference: `env:NAME` or `file:PATH`, never inline, in a type that prints nothing.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use super::node::Node;
use super::section::Setting;

mod spelling;

/// A credential. `Debug` and `show` print where it comes from, never what it is.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret {
    reference: Arc<str>,
    value: Arc<str>,
    forms: Arc<[String]>,
}

impl Secret {
    /// The value itself: only for what is sent to its owner, or compared with.
    pub(crate) fn expose(&self) -> &str {
        &self.value
    }

    /// User and password, where it is `USER:PASSWORD`: only the password is a secret then.
    pub(crate) fn parted(&self) -> Option<(String, Self)> {
        let (user, password) = self.value.split_once(':').filter(|(user, password)| !user.is_empty() && !password.is_empty())?;
        let secret = Self { reference: Arc::clone(&self.reference), value: password.into(), forms: spelling::forms(password) };
        Some((user.to_owned(), secret))
    }

    /// Whether a text holds the secret in any of its forms: it must leave by no door.
    pub(crate) fn is_in(&self, body: &[u8]) -> bool {
        self.forms.iter().any(|form| spelling::find(body, form).is_some())
    }

    /// The text with every form of the secret struck out.
    pub(crate) fn redact(&self, body: &[u8]) -> Bytes {
        let mut out = body.to_vec();
        for form in self.forms.iter() {
            let mut clean = Vec::with_capacity(out.len());
            let mut rest = out.as_slice();
            while let Some(found) = spelling::find(rest, form) {
                clean.extend_from_slice(rest.get(..found.start).unwrap_or_default());
                clean.extend_from_slice(b"[removed]");
                rest = rest.get(found.end..).unwrap_or_default();
            }
            clean.extend_from_slice(rest);
            out = clean;
        }
        out.into()
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Secret({})", self.reference)
    }
}

impl Setting for Secret {
    const REMEDY: &'static str = "write \"env:NAME\" or \"file:PATH\" and see that it is set";

    fn read(node: &Node) -> Result<Self, String> {
        let reference = node.text().ok_or_else(|| "is not a reference to a secret".to_owned())?;
        let value = if let Some(name) = reference.strip_prefix("env:") {
            std::env::var(name).map_err(|_| format!("environment variable {name} is not set"))?
        } else if let Some(path) = reference.strip_prefix("file:") {
            std::fs::read_to_string(path).map_err(|error| format!("file {path} cannot be read: {error}"))?
        } else {
            return Err("a secret stands here in the clear".to_owned());
        };
        let value = value.strip_suffix('\n').map_or(value.as_str(), |value| value.strip_suffix('\r').unwrap_or(value));
        if value.trim().is_empty() {
            return Err(format!("{reference} is empty"));
        }
        if !value.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(format!("{reference} holds something other than visible ASCII"));
        }
        Ok(Self { reference: reference.into(), value: value.into(), forms: spelling::forms(value) })
    }

    fn show(&self) -> toml::Value {
        toml::Value::String(self.reference.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::{Origin, Value};

    fn read(text: &str) -> Result<Secret, String> {
        Secret::read(&Node { value: Value::String(text.into()), origin: Origin::Env("test".into()) })
    }

    #[test]
    fn a_secret_prints_nothing_and_is_found_in_every_form() {
        let secret = Secret { reference: "env:KEY".into(), value: "s3cr+t/key".into(), forms: spelling::forms("s3cr+t/key") };
        assert_eq!(format!("{secret:?}"), "Secret(env:KEY)");
        assert!(secret.is_in(b"key=s3cr+t/key&x"));
        assert!(secret.is_in(b"key=s3cr%2Bt%2Fkey"));
        assert!(!secret.is_in(b"nothing here"));
        assert_eq!(secret.redact(b"a s3cr+t/key b s3cr%2Bt%2Fkey"), "a [removed] b [removed]");
    }

    #[test]
    fn of_user_and_password_the_password_is_the_secret() {
        let of = |value: &str| Secret { reference: "env:KEY".into(), value: value.into(), forms: spelling::forms(value) };
        let (user, secret) = of("AC1:s3cr:et").parted().unwrap();
        assert_eq!((user.as_str(), secret.expose(), format!("{secret:?}").as_str()), ("AC1", "s3cr:et", "Secret(env:KEY)"));
        assert!(secret.is_in(b"password=s3cr:et") && !secret.is_in(b"user=AC1"));
        for alone in ["s3cret", ":s3cret", "AC1:"] {
            assert!(of(alone).parted().is_none(), "{alone}");
        }
    }

    #[test]
    fn files_lose_one_newline_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = |content: &str| {
            let path = dir.path().join("secret");
            std::fs::write(&path, content).unwrap();
            read(&format!("file:{}", path.display()))
        };
        assert_eq!(path("abc\n").unwrap().expose(), "abc");
        assert!(path("abc\n\n").is_err());
        assert!(path("\n").is_err());
        assert!(path("a b").is_err());
        assert!(read("inline").unwrap_err().contains("in the clear"));
        assert!(read("env:SURELY_NOT_SET_ANYWHERE").unwrap_err().contains("not set"));
    }
}
