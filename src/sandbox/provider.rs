//! The providers that are played: where they live, what they charge, how they fail.
//!
//! | provider | list price of a call (micro-USD) | billed |
//! |---|---|---|
//! | google-geocoding | 5,000 | `OK` and `ZERO_RESULTS` |
//! | google-routes | 5,000 (all as Essentials) | every 200 |
//! | opencage | 5,000 | every 200 |
//! | nominatim | 0 | never costs |
//! | twilio | 7,900 | every segment of an accepted message |
//! | stripe | 0 | never costs |
//! | companies-house | 0 | never costs |

use http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::answer::Answer;
use super::asked::Asked;
use crate::clock::Clock;

pub mod companies_house;
pub mod google_geocoding;
pub mod google_routes;
pub mod nominatim;
pub mod opencage;
pub mod stripe;
pub mod twilio;

/// One of the providers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Google Geocoding v3.
    GoogleGeocoding,
    /// Google Routes, `computeRoutes`.
    GoogleRoutes,
    /// OpenCage geocoding.
    #[serde(rename = "opencage")]
    OpenCage,
    /// Nominatim, search and reverse.
    Nominatim,
    /// Twilio Messages.
    Twilio,
    /// Stripe payment intents.
    Stripe,
    /// Companies House company profiles.
    CompaniesHouse,
}

impl Provider {
    /// Its name, as the meter and a fault write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::GoogleGeocoding => "google-geocoding",
            Self::GoogleRoutes => "google-routes",
            Self::OpenCage => "opencage",
            Self::Nominatim => "nominatim",
            Self::Twilio => "twilio",
            Self::Stripe => "stripe",
            Self::CompaniesHouse => "companies-house",
        }
    }

    /// Whose path this is.
    pub fn of(path: &str) -> Option<Self> {
        match path {
            google_geocoding::PATH => Some(Self::GoogleGeocoding),
            google_routes::PATH => Some(Self::GoogleRoutes),
            opencage::PATH => Some(Self::OpenCage),
            nominatim::SEARCH | nominatim::REVERSE => Some(Self::Nominatim),
            stripe::PATH => Some(Self::Stripe),
            path if path.starts_with(twilio::PREFIX) => Some(Self::Twilio),
            path if path.starts_with(companies_house::PREFIX) => Some(Self::CompaniesHouse),
            _ => None,
        }
    }

    /// List price of one call (Twilio: of one segment), in millionths of a US dollar.
    pub fn price_micros(self) -> u64 {
        match self {
            Self::GoogleGeocoding | Self::GoogleRoutes | Self::OpenCage => 5_000,
            Self::Twilio => 7_900,
            Self::Nominatim | Self::Stripe | Self::CompaniesHouse => 0,
        }
    }

    /// The question, as the provider received it.
    pub fn question(self, asked: &Asked) -> String {
        match self {
            Self::GoogleGeocoding => google_geocoding::question(asked),
            Self::GoogleRoutes => google_routes::question(asked),
            Self::OpenCage => opencage::question(asked),
            Self::Nominatim => nominatim::question(asked),
            Self::Twilio => twilio::question(asked),
            Self::Stripe => stripe::question(asked),
            Self::CompaniesHouse => companies_house::question(asked),
        }
    }

    /// A failure with this status, in the provider's own shape.
    pub fn failure(self, status: StatusCode) -> Answer {
        let (code, text) = (status.as_u16(), status.canonical_reason().unwrap_or("Failed"));
        let body = match self {
            Self::GoogleGeocoding => google_geocoding::failure(status),
            Self::GoogleRoutes => google_routes::failure(status, text),
            Self::OpenCage => opencage::body(status, text, &[]),
            Self::Nominatim => json!({"error": {"code": code, "message": text}}),
            Self::Twilio => {
                twilio::failure(status, if code == 429 { 20429 } else { 20000_u32.saturating_add(code.into()) }, text)
            }
            Self::Stripe => stripe::failure("api_error", text, None),
            Self::CompaniesHouse => companies_house::failure(text),
        };
        Answer::json(status, &body)
    }
}

/// The providers at work, with what they remember.
#[derive(Debug)]
pub struct Providers {
    clock: Clock,
    messages: twilio::Messages,
    payments: stripe::Payments,
}

impl Providers {
    /// Providers that remember nothing yet.
    pub fn new(clock: Clock) -> Self {
        Self { clock, messages: twilio::Messages::default(), payments: stripe::Payments::default() }
    }

    /// Takes what the request's answer needs for itself; nothing, if another request has it.
    pub fn take(&self, asked: &Asked) -> Option<stripe::InUse<'_>> {
        self.payments.take(asked)
    }

    /// Answers one request.
    pub fn answer(&self, provider: Provider, asked: &Asked) -> Answer {
        match provider {
            Provider::GoogleGeocoding => google_geocoding::answer(asked),
            Provider::GoogleRoutes => google_routes::answer(asked),
            Provider::OpenCage => opencage::answer(asked),
            Provider::Nominatim => nominatim::answer(asked),
            Provider::Twilio => self.messages.answer(asked, self.clock.now()),
            Provider::Stripe => self.payments.answer(asked, self.clock.now()),
            Provider::CompaniesHouse => companies_house::answer(asked),
        }
    }
}

/// A main text with the parameters that make it another question: `Berlin (language=fr)`.
fn with_parameters(main: &str, asked: &Asked, names: &[&str]) -> String {
    let given: Vec<String> = names.iter().filter_map(|name| asked.query(name).map(|value| format!("{name}={value}"))).collect();
    if given.is_empty() { main.to_owned() } else { format!("{main} ({})", given.join(", ")) }
}

/// Several names of one value: the first that was given.
fn any_query<'a>(asked: &'a Asked, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| asked.query(name))
}

/// ISO country codes from a list such as `de,fr`.
fn countries(list: Option<&str>) -> Vec<String> {
    let codes = list.unwrap_or_default().split(',').map(str::trim).filter(|code| !code.is_empty());
    codes.map(country).collect()
}

/// A country code; Google's regions are domains, so `uk` is Great Britain.
fn country(code: &str) -> String {
    if code.eq_ignore_ascii_case("uk") { "GB".to_owned() } else { code.to_ascii_uppercase() }
}
