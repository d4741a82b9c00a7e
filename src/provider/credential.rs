//! The provider's credential, and where it goes.
//!
//! With HTTP Basic there is a user beside the secret. It is ours, if we have one: what `account` names, or the secret itself as
//! `USER:PASSWORD`. Where such a provider wants the account in the question, too (Twilio: in the path), ours stands there
//! whatever the caller has written. Without one the caller's goes out, and the secret is the password for it.

use http::HeaderName;

use crate::config::node::Node;
use crate::config::secret::Secret;
use crate::config::section::{Section, Setting};

/// A credential.
#[derive(Clone, Debug)]
pub(crate) struct Credential {
    pub(crate) place: CredentialPlace,
    pub(crate) secret: Secret,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum CredentialPlace {
    Query(String),
    Header {
        name: HeaderName,
        prefix: String,
    },
    /// HTTP Basic with the secret as the user name and an empty password.
    BasicUser,
    /// HTTP Basic with the secret as the password.
    Basic {
        /// As the secret names it.
        user: Option<String>,
        /// The field of the question that names the account.
        field: Option<String>,
    },
}

impl Credential {
    /// Reads `key` and `auth`, and the account it is for.
    pub(crate) fn read(section: &Section<'_>) -> (Option<Self>, Option<String>) {
        let account = section.get::<Account>("account").map(|account| account.name);
        let place = section.section("auth").and_then(|auth| {
            let place = CredentialPlace::read(&auth);
            auth.finish();
            place
        });
        let secret = section.get::<Secret>("key");
        match (place, secret) {
            (Some(place), Some(secret)) => Self::placed(section, place, secret, account),
            (Some(_), None) => {
                if !section.has("key") {
                    section.fault("key", "is missing: the provider wants a credential", Secret::REMEDY);
                }
                (None, account)
            }
            (None, Some(_)) => {
                section.fault(
                    "key",
                    "nobody says where the credential goes",
                    "name a preset, or write auth = { in = \"query\", name = \"key\" }",
                );
                (None, account)
            }
            (None, None) => (None, account),
        }
    }

    fn placed(
        section: &Section<'_>,
        place: CredentialPlace,
        secret: Secret,
        account: Option<String>,
    ) -> (Option<Self>, Option<String>) {
        let CredentialPlace::Basic { field, .. } = place else {
            if section.has("account") {
                section.fault("account", "this credential has no user", "remove it, or write auth = { in = \"basic\" }");
            }
            return (Some(Self { place, secret }), account);
        };
        let (user, secret) = match secret.parted() {
            Some((user, secret)) => (Some(user), secret),
            None => (None, secret),
        };
        let account = account.or_else(|| user.clone());
        if account.is_none() && field.is_none() {
            section.fault(
                "key",
                "is a password, and nobody says whose",
                "write USER:PASSWORD into it, or add account = \"USER\"",
            );
        }
        (Some(Self { place: CredentialPlace::Basic { user, field }, secret }), account)
    }
}

impl CredentialPlace {
    fn read(auth: &Section<'_>) -> Option<Self> {
        let place: String = auth.need("in")?;
        let name: Option<String> = auth.get("name");
        let prefix: String = auth.or("prefix", String::new());
        let field: Option<String> = auth.get("user");
        match place.as_str() {
            "query" => name.map(Self::Query),
            "header" => name.and_then(|name| name.parse().ok()).map(|name| Self::Header { name, prefix }),
            "bearer" => Some(Self::Header { name: http::header::AUTHORIZATION, prefix: "Bearer ".into() }),
            "basic-user" => Some(Self::BasicUser),
            "basic" => Some(Self::Basic { user: None, field }),
            _ => None,
        }
        .or_else(|| {
            auth.fault(
                "in",
                "no such place for a credential",
                "write { in = \"query\" or \"header\", name = \"..\" }, \"bearer\", \"basic\" or \"basic-user\"",
            );
            None
        })
    }

    /// The field of the question that names the account.
    pub(crate) fn field(&self) -> Option<&str> {
        if let Self::Basic { field, .. } = self { field.as_deref() } else { None }
    }
}

/// The name of an account: no secret, but it may stand elsewhere.
struct Account {
    written: String,
    name: String,
}

impl Setting for Account {
    const REMEDY: &'static str = "write the account's name, such as \"AC0123..\", or \"env:NAME\"";

    fn read(node: &Node) -> Result<Self, String> {
        let written = node.text().ok_or_else(|| format!("is {}, not a name", node.describe()))?.to_owned();
        let name = match written.strip_prefix("env:") {
            Some(name) => std::env::var(name).map_err(|_| format!("environment variable {name} is not set"))?,
            None => written.clone(),
        };
        let name = name.trim();
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':') {
            return Err("is no name of an account: visible ASCII without a colon".to_owned());
        }
        Ok(Self { name: name.to_owned(), written })
    }

    fn show(&self) -> toml::Value {
        toml::Value::String(self.written.clone())
    }
}
