//! One field of a question: where it is in the request, and what it is.

use std::collections::BTreeMap;

use http::HeaderName;

use super::{Case, Decimal, Invalid, Kind, Raw, Value};
use crate::config::node::Node;
use crate::config::section::Section;

/// A field as the route states it.
#[derive(Clone, Debug)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) kind: Kind,
    pub(crate) required: bool,
    /// What an absent field reads as.
    pub(crate) default: Option<Value>,
    /// What is asked whatever the caller has given.
    pub(crate) ours: Option<Value>,
}

/// Where a value stands in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// Query parameters: one, or two for a pair of coordinates.
    Query(Vec<String>),
    /// Fields of a form body, likewise; none for the rest of a form.
    Form(Vec<String>),
    /// A `{name}` of the exposed path.
    Path(String),
    Header(HeaderName),
    /// A JSON pointer (RFC 6901) into the body.
    Json(String),
}

impl Place {
    pub(crate) fn in_body(&self) -> bool {
        matches!(self, Self::Form(_) | Self::Json(_))
    }

    /// Whether one value would be read for both.
    pub(crate) fn meets(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Query(a), Self::Query(b)) | (Self::Form(a), Self::Form(b)) => a.iter().any(|name| b.contains(name)),
            _ => self == other,
        }
    }

    /// Reads `in` with what belongs to it. `name` is the wire name unless said otherwise.
    pub(crate) fn read(section: &Section<'_>, name: &str) -> Option<Self> {
        const REMEDY: &str = "write \"query\", \"path\", \"header:NAME\", \"json\" or \"form\"";
        if !section.has("in") {
            section.fault("in", "is missing", REMEDY);
        }
        let place: Option<String> = section.get("in");
        let names = section.list::<String>("names").or_else(|| section.get::<String>("name").map(|name| vec![name]));
        let names = names.unwrap_or_else(|| vec![name.to_owned()]);
        let one = || names.first().cloned().unwrap_or_default();
        let pointer = section.get::<String>("at");
        Some(match place?.as_str() {
            "query" => Self::Query(names),
            "form" => Self::Form(names),
            "path" => Self::Path(one()),
            "json" => {
                let pointer = pointer.unwrap_or_else(|| format!("/{}", one()));
                if !pointer.is_empty() && !pointer.starts_with('/') {
                    section.fault(
                        "at",
                        format!("{pointer:?} is not a JSON pointer"),
                        "write a pointer such as \"/origin/address\"",
                    );
                }
                Self::Json(pointer)
            }
            other => match other.strip_prefix("header:").map(str::parse::<HeaderName>) {
                Some(Ok(header)) => Self::Header(header),
                _ => {
                    section.fault("in", format!("{other:?} is no place in a request"), REMEDY);
                    return None;
                }
            },
        })
    }
}

const TYPES: &str = "write text, string, code, country, region, language, integer, decimal, latlng, place, timestamp, set, list, enum, \
                     bool, phone, json, mask or rest";

/// Keys that only some types read.
const KIND_KEYS: [&str; 12] =
    ["min", "max", "places", "precision", "of", "separator", "values", "aliases", "pattern", "case", "drop", "pad"];

const LONGEST_PAD: usize = 64;

/// Keys of a route that TOML puts into `[routes.x.question]` when they are written below its header.
const ROUTE_KEYS: [&str; 27] = [
    "provider",
    "operation",
    "expose",
    "callers",
    "version",
    "scope",
    "coalesce",
    "deadline",
    "max_body",
    "limits",
    "limits_by",
    "lockout",
    "curated",
    "cache",
    "refresh",
    "lease",
    "writes",
    "budget",
    "max_price",
    "one_of",
    "unordered",
    "on_weak",
    "on_store_error",
    "pinned",
    "ignored",
    "send",
    "reply",
];

/// Reads `[routes.x.question]`.
pub(crate) fn read_all(section: &Section<'_>) -> Vec<Field> {
    let mut fields = Vec::new();
    for (name, node) in section.entries() {
        if ROUTE_KEYS.contains(&name) && node.table().is_none_or(|table| !table.contains_key("in")) {
            let route = section.path("").trim_end_matches(".question").to_owned();
            section.fault(
                name,
                format!("`{name}` is a key of the route, but TOML put it into its question"),
                format!("move it above [{route}.question], under [{route}]"),
            );
        } else if node.table().is_none() {
            section.fault(
                name,
                format!("is {}, not a field", node.describe()),
                "write NAME = { in = \"query\", type = \"text\" }",
            );
        }
    }
    for (name, field) in section.tables() {
        if ROUTE_KEYS.contains(&name) && !field.has("in") {
            continue;
        }
        fields.extend(Field::read(field, name));
    }
    fields
}

impl Field {
    /// Reads what was given for it.
    pub(crate) fn take(&self, raw: Raw<'_>) -> Result<Value, Invalid> {
        let given = self.kind.read(raw)?;
        Ok(self.ours.clone().unwrap_or(given))
    }

    /// Says what is asked whatever the caller gives, which need be nothing any more.
    pub(crate) fn stand_for(&mut self, ours: &str) -> Result<(), Invalid> {
        let ours = self.kind.read(Raw::Text(ours))?;
        (self.required, self.default, self.ours) = (false, Some(ours.clone()), Some(ours));
        Ok(())
    }

    fn read(section: Section<'_>, name: &str) -> Option<Self> {
        let mut place = Place::read(&section, name);
        let kind = read_kind(&section, "type");
        let required = section.or("required", false);
        let default = section.node("default").cloned();
        section.known(&KIND_KEYS);
        let default = match (&kind, default) {
            (Some(kind), Some(node)) => read_default(&section, kind, &node),
            _ => None,
        };
        if kind == Some(Kind::Rest) {
            match &mut place {
                Some(Place::Form(names)) => names.clear(),
                _ => section.fault("in", "only a form has a rest", "write in = \"form\""),
            }
        } else if let Some(Place::Query(names) | Place::Form(names)) = &place {
            let most = if matches!(kind, Some(Kind::LatLng { .. })) { 2 } else { 1 };
            if names.is_empty() || names.len() > most {
                section.fault("names", "only a latlng stands in two parameters", "name one parameter");
            }
        }
        section.finish();
        Some(Self { name: name.to_owned(), place: place?, kind: kind?, required, default, ours: None })
    }
}

fn read_default(section: &Section<'_>, kind: &Kind, node: &Node) -> Option<Value> {
    let json = node.json();
    let raw = json.as_str().map_or(Raw::Json(&json), Raw::Text);
    match kind.read(raw) {
        Ok(value) => Some(value),
        Err(invalid) => {
            section.fault("default", invalid.reason, "write a value that the field itself would take");
            None
        }
    }
}

fn read_kind(section: &Section<'_>, key: &'static str) -> Option<Kind> {
    let node = section.node(key);
    if node.is_none() {
        section.fault(key, "is missing", TYPES);
    }
    // `of` takes a type name, or a table with a type and its own numbers.
    if node?.table().is_some() {
        let inner = section.section(key)?;
        let kind = read_kind(&inner, "type");
        inner.known(&KIND_KEYS);
        inner.finish();
        return kind;
    }
    let name: String = section.get(key)?;
    let length = |default: i64, key: &'static str| {
        let number = section.or(key, default);
        usize::try_from(number).unwrap_or_else(|_| {
            section.fault(key, format!("{number} is out of range"), "write a whole number, zero or above");
            0
        })
    };
    let kind = match name.as_str() {
        "text" => Kind::Text { min: length(1, "min"), max: length(1000, "max") },
        "string" => Kind::String { min: length(1, "min"), max: length(1000, "max") },
        "place" => Kind::Place { min: length(1, "min"), max: length(1000, "max") },
        "code" => return read_code(section, length(0, "pad")),
        "country" => Kind::Country,
        "region" => Kind::Region,
        "language" => Kind::Language,
        "integer" => Kind::Integer { min: section.get("min"), max: section.get("max") },
        "decimal" => Kind::Decimal { min: decimal(section, "min"), max: decimal(section, "max"), places: places(section, 6) },
        "latlng" => Kind::LatLng { places: places(section, 5) },
        "timestamp" => Kind::Timestamp { precision: section.or("precision", std::time::Duration::from_secs(1)) },
        "set" => Kind::Set { of: Box::new(read_element(section)?), separator: separator(section) },
        "list" => Kind::List { of: Box::new(read_element(section)?), separator: separator(section) },
        "enum" => return read_enum(section),
        "bool" => Kind::Bool,
        "phone" => Kind::Phone,
        "json" => Kind::Json,
        "mask" => Kind::Mask,
        "rest" => Kind::Rest,
        other => {
            section.fault(key, format!("{other:?} is not a type"), TYPES);
            return None;
        }
    };
    if let Kind::Text { min, max } | Kind::String { min, max } | Kind::Place { min, max } = kind
        && (max == 0 || min > max)
    {
        section.fault("max", format!("nothing fits between {min} and {max} characters"), "raise max, or lower min");
    }
    Some(kind)
}

fn places(section: &Section<'_>, default: i64) -> u32 {
    let places = section.or("places", default);
    u32::try_from(places).ok().filter(|places| *places <= 15).unwrap_or_else(|| {
        section.fault("places", format!("{places} is out of range"), "write how many decimals are kept, 0 to 15");
        0
    })
}

fn decimal(section: &Section<'_>, key: &'static str) -> Option<Decimal> {
    let node = section.node(key)?;
    let text = node.json().to_string();
    let parsed = text.trim_matches('"').parse().ok();
    if parsed.is_none() {
        section.fault(key, format!("is {}, not a number", node.describe()), "write a number, such as -90 or \"0.5\"");
    } else {
        section.show(key, text.trim_matches('"').to_owned());
    }
    parsed
}

/// The type of a collection's elements.
fn read_element(section: &Section<'_>) -> Option<Kind> {
    let kind = read_kind(section, "of")?;
    if kind == Kind::Rest {
        section.fault("of", "the rest of a form is no element", TYPES);
        return None;
    }
    Some(kind)
}

fn separator(section: &Section<'_>) -> Option<char> {
    let text: String = section.or("separator", ",".to_owned());
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (letter, None) => letter,
        _ => {
            let remedy = "write one character, such as \",\" or \"|\", or \"\" for a parameter of its own each";
            section.fault("separator", format!("{text:?} is not one character"), remedy);
            Some(',')
        }
    }
}

fn read_enum(section: &Section<'_>) -> Option<Kind> {
    let values = section.list::<String>("values").unwrap_or_default();
    if values.is_empty() {
        section.fault("values", "an enum needs its values", "write values = [\"A\", \"B\"]");
        return None;
    }
    let aliases: BTreeMap<String, String> = section.section("aliases").map(|aliases| aliases.map::<String>()).unwrap_or_default();
    for (alias, value) in &aliases {
        if !values.contains(value) {
            section.fault(
                "aliases",
                format!("alias {alias:?} stands for {value:?}, which is not a value"),
                "name one of `values`",
            );
        }
    }
    Some(Kind::Enum { values, aliases })
}

fn read_code(section: &Section<'_>, pad: usize) -> Option<Kind> {
    if pad > LONGEST_PAD {
        section.fault("pad", format!("{pad} digits are no code"), format!("write {LONGEST_PAD} or less"));
        return None;
    }
    let case = match section.or("case", "upper".to_owned()).as_str() {
        "upper" => Case::Upper,
        "lower" => Case::Lower,
        "keep" => Case::Keep,
        other => {
            section.fault("case", format!("{other:?} is not a case"), "write \"upper\", \"lower\" or \"keep\"");
            return None;
        }
    };
    let drop: String = section.or("drop", String::new());
    let pattern: Option<String> = section.get("pattern");
    match Kind::code(pattern.as_deref(), case, drop, pad) {
        Ok(kind) => Some(kind),
        Err(error) => {
            // The last line of several, which draw the pattern and point at it.
            let problem = error.to_string().lines().last().unwrap_or_default().to_owned();
            section.fault("pattern", problem, "write a regular expression for the whole code, such as \"[A-Z0-9]{8}\"");
            None
        }
    }
}
