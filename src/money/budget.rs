//! `budget` of a provider or a route: caps on what may be spent in a day or a month.

use std::sync::Arc;

use super::window::{Span, Zone};
use super::{Currency, Money, Price};
use crate::clock::Timestamp;
use crate::config::section::{Section, Setting};
use crate::config::units::Count;
use crate::store::SwitchState;
use crate::store::money::Cap;

/// What is said of spending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Budget {
    /// `"none"`, said aloud.
    Unlimited,
    Capped(Caps),
}

/// Caps, all in one currency and one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caps {
    pub(crate) currency: Currency,
    pub(crate) zone: Zone,
    /// Each with its span, and whether it is a caller's.
    limits: Vec<Limit>,
    /// Shares of a cap, in percent, at which an alert is sent.
    alert: Arc<[u32]>,
    /// The position that routes are put into until the window ends, once a cap is used up.
    stop: Option<SwitchState>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    span: Span,
    per_caller: bool,
    most: u64,
}

/// The keys of caps. Those of one caller are a route's alone.
const KEYS: [(&str, Span, bool); 4] = [
    ("day", Span::Day, false),
    ("month", Span::Month, false),
    ("caller_day", Span::Day, true),
    ("caller_month", Span::Month, true),
];

impl Budget {
    /// Reads the key `budget`. `price` is that of a call.
    pub(crate) fn read(section: &Section<'_>, of_a_route: bool, price: Option<&Price>) -> Option<Self> {
        let node = section.node("budget")?;
        if node.text() == Some("none") {
            section.show("budget", "none");
            return Some(Self::Unlimited);
        }
        if node.table().is_none() {
            let remedy = "write budget = { day = \"20 USD\", zone = \"UTC\" }, or \"none\" to say aloud that there is no cap";
            section.fault("budget", format!("is {}, not a table", node.describe()), remedy);
            // Whatever it was to be, something was said.
            return Some(Self::Unlimited);
        }
        let below = section.section("budget")?;
        let caps = Caps::read(&below, of_a_route, price);
        below.finish();
        Some(caps.map_or(Self::Unlimited, Self::Capped))
    }

    pub(crate) fn caps(&self) -> Option<&Caps> {
        match self {
            Self::Unlimited => None,
            Self::Capped(caps) => Some(caps),
        }
    }
}

impl Caps {
    fn read(section: &Section<'_>, of_a_route: bool, price: Option<&Price>) -> Option<Self> {
        let zone = section.or("zone", Zone::utc());
        let alert = section.list_or("alert", Vec::new).into_iter().map(|share: Count| share.0).collect::<Arc<[u32]>>();
        if alert.iter().any(|share| *share > 100) {
            section.fault("alert", "holds a share above 100%", "write shares in percent, such as [50, 80, 100]");
        }
        let stop = read_stop(section);
        let mut currency = price.map(Price::currency);
        let mut limits = Vec::new();
        let keys = || KEYS.into_iter().filter(|(.., per_caller)| of_a_route || !per_caller);
        for (key, span, per_caller) in keys() {
            let Some(most) = section.get::<Money>(key) else { continue };
            if *currency.get_or_insert(most.currency) != most.currency {
                let other = currency.map(|currency| currency.code().to_owned()).unwrap_or_default();
                section.fault(key, format!("is in {}, and calls are paid in {other}", most.currency.code()), "write it in that");
            }
            if most.micros == 0 {
                section.fault(key, "would let nothing through", "raise it, or switch the route off");
            } else if let Some(least) = price.map(Price::least).filter(|least| least.micros > most.micros) {
                section.fault(key, format!("holds no call: one costs {least}"), "raise it");
            }
            limits.push(Limit { span, per_caller, most: most.micros });
        }
        if !keys().any(|(key, ..)| section.has(key)) {
            section.fault("day", "no cap is stated", Money::REMEDY);
        }
        if limits.is_empty() {
            return None;
        }
        if stop.is_some() && limits.iter().all(|limit| limit.per_caller) {
            section.fault("stop", "a caller's own budget stops nobody else", "state day or month, or remove it");
        }
        Some(Self { currency: currency?, zone, limits, alert, stop })
    }

    /// The caps that are over an attempt now. A caller's own carry its digest.
    pub(crate) fn now<'a>(
        &'a self,
        kind: &'a str,
        name: &'a str,
        caller: u128,
        now: Timestamp,
    ) -> impl Iterator<Item = Over> + use<'a> {
        self.limits.iter().map(move |limit| {
            let window = self.zone.window(limit.span, now);
            let scope = format!("{kind}:{name}");
            let caller = if limit.per_caller { format!("|caller:{caller:032x}") } else { String::new() };
            let name = format!("{scope}{caller}|{}|{}", self.currency.code(), window.name);
            let cap = Cap { name, most: limit.most, ends: window.ends };
            Over {
                cap,
                scope,
                window: limit.span.word(),
                per_caller: limit.per_caller,
                of_provider: kind == "provider",
                currency: self.currency,
                alert: Arc::clone(&self.alert),
                stop: self.stop,
            }
        })
    }
}

fn read_stop(section: &Section<'_>) -> Option<SwitchState> {
    let stop: String = section.get("stop")?;
    match stop.as_str() {
        "cached" => Some(SwitchState::Cached),
        "off" => Some(SwitchState::Off),
        _ => {
            section.fault("stop", format!("{stop:?} is no position to stop in"), "write \"cached\" or \"off\"");
            None
        }
    }
}

/// A cap that is over an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Over {
    pub(crate) cap: Cap,
    /// `route:geocode`, `provider:opencage`.
    pub(crate) scope: String,
    /// `day` or `month`.
    pub(crate) window: &'static str,
    pub(crate) per_caller: bool,
    /// Else a route's.
    pub(crate) of_provider: bool,
    pub(crate) currency: Currency,
    pub(crate) alert: Arc<[u32]>,
    pub(crate) stop: Option<SwitchState>,
}
