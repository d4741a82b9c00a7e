//! Presets: what is known about a provider, as TOML files built into the binary.

use super::MaxStore;
use crate::config::fault::Faults;
use crate::config::node::{self, Node, Table, Value};
use crate::config::section::Setting as _;

const PRESETS: [(&str, &str); 7] = [
    ("companies-house", include_str!("../../config/providers/companies-house.toml")),
    ("google-geocoding", include_str!("../../config/providers/google-geocoding.toml")),
    ("google-routes", include_str!("../../config/providers/google-routes.toml")),
    ("nominatim", include_str!("../../config/providers/nominatim.toml")),
    ("opencage", include_str!("../../config/providers/opencage.toml")),
    ("stripe", include_str!("../../config/providers/stripe.toml")),
    ("twilio", include_str!("../../config/providers/twilio.toml")),
];

/// The names of all presets.
pub(crate) fn names() -> String {
    PRESETS.map(|(name, _)| name).join(", ")
}

/// A preset: the provider's part, and its operations.
pub(crate) fn find(name: &str) -> Option<(Table, Table)> {
    let (_, source) = PRESETS.iter().find(|(known, _)| *known == name)?;
    let mut faults = Faults::default();
    let mut table = node::parse(&format!("preset {name}"), source, &mut faults);
    debug_assert!(faults.is_empty(), "{faults}");
    let operations = match table.remove("operations") {
        Some(Node { value: Value::Table(operations), .. }) => operations,
        _ => Table::new(),
    };
    Some((table, operations))
}

/// Whether what is written lets answers be kept longer than the preset's terms do.
pub(crate) fn raises_terms(preset: &Table, written: &Table) -> bool {
    let longest = |table: &Table| MaxStore::read(table.get("terms")?.table()?.get("max_store")?).ok();
    matches!((longest(preset), longest(written)), (Some(known), Some(stated)) if stated.0 > known.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_toml_with_operations() {
        for (name, source) in PRESETS {
            let mut faults = Faults::default();
            node::parse(name, source, &mut faults);
            assert!(faults.is_empty(), "{name}: {faults}");
            assert!(!find(name).unwrap().1.is_empty(), "{name}");
        }
    }
}
