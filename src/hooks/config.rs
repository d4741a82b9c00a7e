//! `[hooks]`.

use std::net::SocketAddr;

use super::amount::Share;
use crate::config::section::Section;
use crate::jwks;
use crate::store::SwitchState;

/// Where providers' notices are taken, and which.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) listen: SocketAddr,
    pub(crate) google_budget: Option<GoogleBudget>,
}

/// `google_budget`.
#[derive(Clone, Debug)]
pub(crate) struct GoogleBudget {
    /// What the subscription says its tokens are for.
    pub(crate) audience: String,
    /// The service account that signs them. Any other could get one for our audience.
    pub(crate) email: String,
    /// Google's keys.
    pub(crate) jwks: jwks::Source,
    pub(crate) order: Order,
}

/// What is done when a budget is spent.
#[derive(Clone, Debug)]
pub(crate) struct Order {
    /// At this share of it.
    pub(crate) at: Share,
    /// A route, or `all`.
    pub(crate) route: String,
    /// `cached` or `off`.
    pub(crate) position: SwitchState,
}

/// <https://accounts.google.com/.well-known/openid-configuration> names it.
const GOOGLE_KEYS: &str = "https://www.googleapis.com/oauth2/v3/certs";

impl Config {
    /// Reads the section. Whether there is a route is for whoever knows them: `knows`.
    pub(crate) fn read(section: Section<'_>, knows: impl Fn(&str) -> bool) -> Self {
        let listen = section.or("listen", SocketAddr::from(([127, 0, 0, 1], 9098)));
        if !section.has("google_budget") {
            section.fault("google_budget", "is missing: there is nothing to listen for", "add it, or remove [hooks]");
        }
        let google_budget = section.section("google_budget").and_then(|below| GoogleBudget::read(below, knows));
        section.finish();
        Self { listen, google_budget }
    }
}

impl GoogleBudget {
    fn read(section: Section<'_>, knows: impl Fn(&str) -> bool) -> Option<Self> {
        let audience = needed(
            &section,
            "audience",
            |text| !text.is_empty() && text.trim() == text,
            "is no audience",
            "write what the push subscription has as its audience: the address it pushes to, unless it says otherwise",
        );
        let email = needed(
            &section,
            "email",
            |text| text.split_once('@').is_some_and(|(name, host)| !name.is_empty() && !host.is_empty() && text.trim() == text),
            "is no address of an account",
            "write the service account of the push subscription, such as \"push@project.iam.gserviceaccount.com\"",
        );
        let jwks = jwks::Source::read(&section, &section.or("jwks", GOOGLE_KEYS.to_owned()));
        let order = Order::read(&section, knows);
        section.finish();
        Some(Self { audience: audience?, email: email?, jwks: jwks?, order: order? })
    }
}

/// A text without which nobody could be told apart.
fn needed(section: &Section<'_>, key: &'static str, right: fn(&str) -> bool, problem: &str, remedy: &str) -> Option<String> {
    if !section.has(key) {
        section.fault(key, "is missing", remedy);
        return None;
    }
    let text = section.get::<String>(key)?;
    if right(&text) {
        return Some(text);
    }
    section.fault(key, problem, remedy);
    None
}

impl Order {
    fn read(section: &Section<'_>, knows: impl Fn(&str) -> bool) -> Option<Self> {
        let at = section.or("at", Share::WHOLE);
        let route = section.or("route", "all".to_owned());
        if route != "all" && !knows(&route) {
            section.fault("route", format!("there is no route {route:?}"), "name one of [routes], or \"all\"");
        }
        let position = match section.or("position", "cached".to_owned()).as_str() {
            "cached" => SwitchState::Cached,
            "off" => SwitchState::Off,
            other => {
                section.fault("position", format!("{other:?} stops nothing"), "write \"cached\" or \"off\"");
                return None;
            }
        };
        Some(Self { at, route, position })
    }
}
