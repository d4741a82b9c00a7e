//! The types a field may have.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{BadPattern, Case, Decimal, Invalid, Pattern, Raw, Value};
use super::{code, collection, country, json, language, latlng, mask, phone, place, rest, scalar, string, text, timestamp};

/// What a field is. Types are told apart by [`name`](Self::name), as in the configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    /// Free text; see [`text`].
    Text {
        /// Fewest characters, asked.
        min: usize,
        /// Most characters, asked and in the key.
        max: usize,
    },
    /// Text taken as it is written: every character of it counts.
    String {
        /// Fewest characters.
        min: usize,
        /// Most characters.
        max: usize,
    },
    /// A code of a register: a company number, a licence plate. Make one with [`Kind::code`].
    Code {
        /// What the canonical form must match as a whole.
        pattern: Option<Pattern>,
        /// Which letter case is canonical.
        case: Case,
        /// Separators that mean nothing and are dropped.
        drop: String,
        /// To how many characters a code of digits alone is filled up with zeros.
        pad: usize,
    },
    /// ISO 3166-1 alpha-2, upper-case; UK is GB, EL is GR.
    Country,
    /// Country-code top-level domain, lower-case; gb is uk.
    Region,
    /// BCP 47 tag in canonical case.
    Language,
    /// A whole number.
    Integer {
        /// Least, inclusive.
        min: Option<i64>,
        /// Greatest, inclusive.
        max: Option<i64>,
    },
    /// A decimal number, computed on its text.
    Decimal {
        /// Least, inclusive.
        min: Option<Decimal>,
        /// Greatest, inclusive.
        max: Option<Decimal>,
        /// Decimal places kept; rounded half to even.
        places: u32,
    },
    /// Latitude and longitude.
    LatLng {
        /// Decimal places kept; rounded half to even.
        places: u32,
    },
    /// A Google waypoint: address, place id or coordinates.
    Place {
        /// Fewest characters of an address.
        min: usize,
        /// Most characters of an address.
        max: usize,
    },
    /// A moment, in UTC.
    Timestamp {
        /// Cut down to whole multiples of this since the Unix epoch; zero keeps it exact.
        precision: Duration,
    },
    /// Elements whose order and repetition mean nothing.
    Set {
        /// Type of the elements.
        of: Box<Kind>,
        /// What joins them in text; without one each is a parameter of its own.
        separator: Option<char>,
    },
    /// Elements in an order that matters.
    List {
        /// Type of the elements.
        of: Box<Kind>,
        /// What joins them in text; without one each is a parameter of its own.
        separator: Option<char>,
    },
    /// One of some words; letter case means nothing.
    Enum {
        /// The words as the provider writes them.
        values: Vec<String>,
        /// Other spellings (Google's enum numbers), each with the word it means.
        aliases: BTreeMap<String, String>,
    },
    /// True or false.
    Bool,
    /// A telephone number, E.164.
    Phone,
    /// Any JSON, taken whole.
    Json,
    /// A Google field mask.
    Mask,
    /// What nothing else claims of a form.
    Rest,
}

impl Kind {
    /// A code whose canonical form must match `pattern`, a regular expression with ASCII classes, as a whole.
    pub fn code(pattern: Option<&str>, case: Case, drop: impl Into<String>, pad: usize) -> Result<Self, BadPattern> {
        let pattern = pattern.map(Pattern::new).transpose()?;
        Ok(Self::Code { pattern, case, drop: drop.into(), pad })
    }

    /// Reads a value, or says why it is none of this type.
    #[allow(clippy::needless_pass_by_value, reason = "a raw value is read once")]
    pub fn read(&self, raw: Raw<'_>) -> Result<Value, Invalid> {
        match self {
            Self::Text { min, max } => text::read(raw.string()?, *min, *max),
            Self::String { min, max } => string::read(raw.string()?, *min, *max),
            Self::Code { pattern, case, drop, pad } => code::read(raw.string()?, pattern.as_ref(), *case, drop, *pad),
            Self::Country => country::country(raw.string()?),
            Self::Region => country::region(raw.string()?),
            Self::Language => language::read(raw.string()?),
            Self::Integer { min, max } => scalar::integer(&raw.string_or_number()?, *min, *max),
            Self::Decimal { min, max, places } => scalar::decimal(&raw.string_or_number()?, min.as_ref(), max.as_ref(), *places),
            Self::LatLng { places } => latlng::read(&raw, *places),
            Self::Place { min, max } => place::read(&raw, *min, *max),
            Self::Timestamp { precision } => timestamp::read(&raw.string_or_number()?, *precision),
            Self::Set { of, separator } => collection::set(&raw, of, *separator),
            Self::List { of, separator } => collection::list(&raw, of, *separator),
            Self::Enum { values, aliases } => scalar::choice(&raw.string_or_number()?, values, aliases),
            Self::Bool => scalar::boolean(&raw),
            Self::Phone => phone::read(raw.string()?),
            Self::Json => json::read(&raw),
            Self::Mask => mask::read(&raw),
            Self::Rest => rest::read(&raw),
        }
    }

    /// The name of the type in the configuration.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Text { .. } => "text",
            Self::String { .. } => "string",
            Self::Code { .. } => "code",
            Self::Country => "country",
            Self::Region => "region",
            Self::Language => "language",
            Self::Integer { .. } => "integer",
            Self::Decimal { .. } => "decimal",
            Self::LatLng { .. } => "latlng",
            Self::Place { .. } => "place",
            Self::Timestamp { .. } => "timestamp",
            Self::Set { .. } => "set",
            Self::List { .. } => "list",
            Self::Enum { .. } => "enum",
            Self::Bool => "bool",
            Self::Phone => "phone",
            Self::Json => "json",
            Self::Mask => "mask",
            Self::Rest => "rest",
        }
    }

    /// Whether the field may be given only once.
    pub fn single(&self) -> bool {
        !matches!(self, Self::Set { .. } | Self::List { .. } | Self::Mask)
    }
}
