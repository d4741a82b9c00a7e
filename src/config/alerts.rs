//! `[alerts]`: whom to tell, and by what secret they know that it is us.

use std::fmt;

use http::Uri;

use super::node::Node;
use super::secret::Secret;
use super::section::{Section, Setting};
use super::units::is_loopback;

/// `[alerts]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Alerts {
    pub(crate) webhook: Webhook,
    /// Alerts are signed with it, where it is.
    pub(crate) secret: Option<Secret>,
}

/// Where alerts go. The address may itself be a credential, and is then written by reference and never printed.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Webhook {
    pub(crate) url: String,
    shown: String,
}

impl fmt::Debug for Webhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Webhook({})", self.shown)
    }
}

impl Alerts {
    pub(super) fn read(section: Section<'_>) -> Option<Self> {
        let (webhook, secret) = (section.need("webhook"), section.get("secret"));
        section.finish();
        Some(Self { webhook: webhook?, secret })
    }
}

impl Setting for Webhook {
    const REMEDY: &'static str =
        "write \"https://HOST/PATH\"; or \"env:NAME\" or \"file:PATH\", where the address is itself a secret";

    fn read(node: &Node) -> Result<Self, String> {
        let text = node.text().ok_or_else(|| format!("{} is no address", node.describe()))?;
        if text.starts_with("env:") || text.starts_with("file:") {
            let secret = Secret::read(node)?;
            check(secret.expose(), true)?;
            return Ok(Self { url: secret.expose().to_owned(), shown: text.to_owned() });
        }
        check(text, false)?;
        Ok(Self { url: text.to_owned(), shown: text.into() })
    }

    fn show(&self) -> toml::Value {
        self.shown.as_str().into()
    }
}

/// What is wrong with an address is said without repeating it.
fn check(url: &str, by_reference: bool) -> Result<(), String> {
    let uri: Uri = url.parse().map_err(|_| "is no address".to_owned())?;
    match uri.scheme_str() {
        _ if uri.host().is_none_or(str::is_empty) => Err("is no address".into()),
        _ if !by_reference && uri.authority().is_some_and(|authority| authority.as_str().contains('@')) => {
            Err("a password stands here in the clear".into())
        }
        Some("https") => Ok(()),
        Some("http") if is_loopback(&uri) => Ok(()),
        Some("http") => Err("is plain http to another machine".into()),
        _ => Err("is no address of a web server".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_or_here() {
        for right in ["https://hooks.example/a?b=c", "http://127.0.0.1:9000/x", "http://[::1]/", "http://localhost"] {
            assert_eq!(check(right, false), Ok(()), "{right}");
        }
        for wrong in
            ["", "hooks.example", "https://", "http://hooks.example/", "ftp://127.0.0.1/", "https://me:word@hooks.example/"]
        {
            let told = check(wrong, false).unwrap_err();
            assert!(!told.contains("word@"), "{told}");
        }
        assert_eq!(check("https://me:word@hooks.example/", true), Ok(()));
    }
}
