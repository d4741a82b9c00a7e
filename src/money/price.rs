//! What one call costs: a fixed amount, so much a unit, or by the prefix of a number.

use super::{Currency, Money};
use crate::config::node::{Node, Value as Written};
use crate::config::section::{Section, Setting};
use crate::question::Value;

/// The largest amount that counts exactly in a store whose numbers are doubles.
const MOST: u64 = (1 << 53) - 1;

/// `price` of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Price {
    /// The same for every call.
    Flat(Money),
    /// So much for each unit of what is asked.
    Units { unit: Unit, each: Money },
    /// By the longest prefix that fits.
    Table { rows: Vec<(String, Money)>, otherwise: Money },
}

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Parts of a short message: 160 or 153 characters of the GSM alphabet, 70 or 67 of UCS-2 (3GPP TS 23.038, 23.040).
    Segments,
    /// Elements of a matrix: origins times destinations.
    Elements,
}

/// `priced_by` of an operation: the fields a price looks at, by index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PricedBy {
    segments: Option<usize>,
    elements: Vec<usize>,
    prefix: Option<usize>,
}

impl PricedBy {
    pub(crate) fn read(section: &Section<'_>, fields: &[String]) -> Self {
        let Some(below) = section.section("priced_by") else { return Self::default() };
        let index = |key: &'static str, name: &str| {
            let found = fields.iter().position(|field| field == name);
            if found.is_none() {
                below.fault(key, format!("{name:?} is no field of the question"), "name a field of [question]");
            }
            found
        };
        let one = |key| below.get::<String>(key).and_then(|name| index(key, &name));
        let names = below.list::<String>("elements").unwrap_or_default();
        let elements = names.iter().filter_map(|name| index("elements", name)).collect();
        let by = Self { segments: one("segments"), elements, prefix: one("prefix") };
        below.finish();
        by
    }
}

impl Price {
    pub(crate) fn read(section: &Section<'_>) -> Option<Self> {
        if section.node("price")?.table().is_none() {
            return section.get("price").map(Self::Flat);
        }
        let below = section.section("price")?;
        let price = if below.has("table") { Self::read_table(&below) } else { Self::read_units(&below) };
        below.finish();
        price
    }

    fn read_units(section: &Section<'_>) -> Option<Self> {
        let each = section.need::<Money>("each");
        let word = section.need::<String>("units")?;
        let unit = match word.as_str() {
            "segments" => Unit::Segments,
            "elements" => Unit::Elements,
            _ => {
                section.fault("units", format!("{word:?} is no unit"), "write segments or elements");
                return None;
            }
        };
        Some(Self::Units { unit, each: each? })
    }

    fn read_table(section: &Section<'_>) -> Option<Self> {
        const REMEDY: &str = "write rows such as { prefix = \"+1\", price = \"0.0079 USD\" }";
        let otherwise = section.need::<Money>("otherwise");
        let node = section.node("table")?;
        let Written::Array(items) = &node.value else {
            section.fault("table", format!("is {}, not a list", node.describe()), REMEDY);
            return None;
        };
        let rows: Option<Vec<_>> = items.iter().map(row).collect();
        let Some(rows) = rows.filter(|rows| !rows.is_empty()) else {
            section.fault("table", "has a row that is none", REMEDY);
            return None;
        };
        let shown = rows.iter().map(|(prefix, price)| {
            let row = [("prefix", prefix.clone()), ("price", price.to_string())];
            toml::Value::Table(row.into_iter().map(|(key, text)| (key.to_owned(), text.into())).collect())
        });
        section.show("table", shown.collect::<Vec<_>>());
        let otherwise = otherwise?;
        if rows.iter().any(|(_, price)| price.currency != otherwise.currency) {
            section.fault("table", "mixes currencies", "write every price in one currency");
        }
        Some(Self::Table { rows, otherwise })
    }

    pub(crate) fn currency(&self) -> Currency {
        match self {
            Self::Flat(money) | Self::Units { each: money, .. } | Self::Table { otherwise: money, .. } => money.currency,
        }
    }

    /// Whether every call costs the same.
    pub(crate) fn is_flat(&self) -> bool {
        matches!(self, Self::Flat(_))
    }

    /// Whether no call costs anything.
    pub(crate) fn is_free(&self) -> bool {
        self.least().micros == 0 && !matches!(self, Self::Table { .. })
    }

    /// What the cheapest call costs: also the price of a request of which nothing else is known.
    pub(crate) fn least(&self) -> Money {
        match self {
            Self::Flat(money) | Self::Units { each: money, .. } => *money,
            Self::Table { rows, otherwise } => {
                let least = rows.iter().map(|(_, price)| price.micros).fold(otherwise.micros, u64::min);
                Money { micros: least, ..*otherwise }
            }
        }
    }

    /// What this question costs.
    pub(crate) fn of(&self, by: &PricedBy, values: &[Option<Value>]) -> Money {
        let value = |index: usize| values.get(index).and_then(Option::as_ref);
        let text = |index: Option<usize>| index.and_then(value).map(|value| value.asked.text()).unwrap_or_default();
        match self {
            Self::Flat(money) => *money,
            Self::Units { unit: Unit::Segments, each } => times(*each, segments(&text(by.segments))),
            Self::Units { unit: Unit::Elements, each } => {
                let count = |index: &usize| value(*index).map_or(1, |value| value.asked.len().max(1) as u64);
                times(*each, by.elements.iter().map(count).fold(1, u64::saturating_mul))
            }
            Self::Table { rows, otherwise } => {
                let number = text(by.prefix);
                let fitting = rows.iter().filter(|(prefix, _)| number.starts_with(prefix.as_str()));
                fitting.max_by_key(|(prefix, _)| prefix.len()).map_or(*otherwise, |(_, price)| *price)
            }
        }
    }

    /// What a route must say so that this price can be reckoned, if it does not.
    pub(crate) fn missing(&self, by: &PricedBy) -> Option<&'static str> {
        match self {
            Self::Units { unit: Unit::Segments, .. } if by.segments.is_none() => Some("segments = \"FIELD\""),
            Self::Units { unit: Unit::Elements, .. } if by.elements.is_empty() => Some("elements = [\"FIELD\"]"),
            Self::Table { .. } if by.prefix.is_none() => Some("prefix = \"FIELD\""),
            _ => None,
        }
    }
}

fn row(node: &Node) -> Option<(String, Money)> {
    let table = node.table().filter(|table| table.len() == 2)?;
    Some((table.get("prefix")?.text()?.to_owned(), Money::read(table.get("price")?).ok()?))
}

fn times(each: Money, count: u64) -> Money {
    Money { micros: each.micros.saturating_mul(count).min(MOST), ..each }
}

/// Parts a text is sent in. A character that takes two places is not split between parts, so a part may end one short.
fn segments(text: &str) -> u64 {
    let septets: Option<Vec<u64>> = text.chars().map(septets).collect();
    let (lengths, single, part) = match septets {
        Some(septets) => (septets, 160, 153),
        None => (text.chars().map(|c| c.len_utf16() as u64).collect(), 70, 67),
    };
    if lengths.iter().sum::<u64>() <= single {
        return 1;
    }
    let fill = |(parts, full), length| if full + length > part { (parts + 1, length) } else { (parts, full + length) };
    lengths.into_iter().fold((1, 0), fill).0
}

/// What a character takes in the GSM 7-bit default alphabet (3GPP TS 23.038), if it is in it.
fn septets(c: char) -> Option<u64> {
    const BASIC: &str = "@£$¥èéùìòÇ\nØø\rÅåΔ_ΦΓΛΩΠΨΣΘΞÆæßÉ !\"#¤%&'()*+,-./0123456789:;<=>?¡ABCDEFGHIJKLMNOPQRSTUVWXYZÄÖÑÜ§¿abcdefghijklmnopqrstuvwxyzäöñüà";
    const EXTENDED: &str = "\u{c}^{}\\[~]|€";
    if BASIC.contains(c) {
        Some(1)
    } else if EXTENDED.contains(c) {
        Some(2)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Asked;

    fn usd(micros: u64) -> Money {
        Money { micros, currency: Money::parse("0 USD").unwrap().currency }
    }

    fn value(text: &str) -> Value {
        Value { asked: Asked::Text(text.to_owned()), key: text.to_owned() }
    }

    #[test]
    fn segments_are_those_of_the_standard() {
        for (text, right) in [
            (String::new(), 1),
            ("a".repeat(160), 1),
            ("a".repeat(161), 2),
            ("a".repeat(306), 2),
            ("a".repeat(307), 3),
            ("€".repeat(80), 1),
            ("€".repeat(81), 2),
            ("ą".repeat(70), 1),
            ("ą".repeat(71), 2),
            ("😀".repeat(35), 1),
            ("😀".repeat(36), 2),
            ("a".repeat(159) + "ą", 3),
            ("😀".repeat(67), 3),
            ("€".repeat(153), 3),
            ("€".repeat(152), 2),
        ] {
            assert_eq!(segments(&text), right, "{} of {:?}", text.chars().count(), text.chars().next());
        }
    }

    #[test]
    fn a_price_by_units_or_by_prefix() {
        let by = PricedBy { segments: Some(0), elements: vec![1, 2], prefix: Some(3) };
        let list = |n: usize| {
            let items = vec![Asked::Text("x".into()); n];
            Some(Value { asked: Asked::List { items, separator: Some('|') }, key: String::new() })
        };
        let values = [Some(value(&"a".repeat(161))), list(3), list(4), Some(value("+4915112345"))];
        assert_eq!(Price::Units { unit: Unit::Segments, each: usd(7_900) }.of(&by, &values), usd(15_800));
        assert_eq!(Price::Units { unit: Unit::Elements, each: usd(5_000) }.of(&by, &values), usd(60_000));
        assert_eq!(Price::Units { unit: Unit::Elements, each: usd(MOST) }.of(&by, &values), usd(MOST));
        let rows = vec![("+1".to_owned(), usd(1)), ("+4".to_owned(), usd(2)), ("+49151".to_owned(), usd(3))];
        let table = Price::Table { rows, otherwise: usd(100) };
        assert_eq!(table.of(&by, &values), usd(3));
        assert_eq!((table.of(&by, &[]), table.least()), (usd(100), usd(1)));
    }
}
