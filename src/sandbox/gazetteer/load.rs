//! Reads the two tables that are built in. A line that cannot be read is left out, and a test sees to it that there is none.

use std::collections::HashMap;

use sha2::{Digest, Sha256};

use super::fold::name;
use super::point::Point;
use super::{Country, Gazetteer, Level, Place};

const CITIES: &str = include_str!("gazetteer.csv");
const COUNTRIES: &str = include_str!("countries.csv");

/// Both tables, indexed.
pub fn load() -> Gazetteer {
    let mut all = Gazetteer::default();
    let mut codes = HashMap::new();
    for fields in rows(COUNTRIES) {
        let [code, english, others, land, lat, lng] = fields;
        let country = Country { code, name: english, land };
        let Some(place) = place(Level::Country, english, "", country, [lat, lng]) else { continue };
        codes.insert(code, country);
        for known in others.split('|').chain([english]) {
            all.countries.insert(name(known), all.places.len());
        }
        all.places.push(place);
    }
    for fields in rows(CITIES) {
        let [city, region, code, lat, lng, others] = fields;
        let country = codes.get(code).copied();
        let Some(place) = country.and_then(|country| place(Level::City, city, region, country, [lat, lng])) else { continue };
        for known in others.split('|').chain([city]).filter(|known| !known.is_empty()) {
            all.cities.entry(name(known)).or_default().push(all.places.len());
        }
        all.places.push(place);
    }
    all
}

fn rows(table: &'static str) -> impl Iterator<Item = [&'static str; 6]> {
    let lines = table.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(',').collect::<Vec<_>>().try_into().ok())
}

fn place(level: Level, known: &'static str, region: &'static str, country: Country, at: [&str; 2]) -> Option<Place> {
    let [lat, lng] = at.map(|degrees| degrees.parse().ok());
    let id = id(level, known, region, country.code);
    let regions = region.split('|').filter(|name| !name.is_empty()).map(name).collect();
    let region = region.split('|').next().unwrap_or_default();
    Some(Place { level, name: known, region, country, at: Point::new(lat?, lng?)?, id, regions })
}

/// `ChIJ` and 23 characters, always the same for the same place.
fn id(level: Level, known: &str, region: &str, code: &str) -> String {
    let digest = Sha256::digest(format!("{level:?}/{known}/{region}/{code}"));
    let mut id = String::from("ChIJ");
    for byte in digest.iter().take(23) {
        id.push(char::from_digit(u32::from(*byte) % 36, 36).unwrap_or('0'));
    }
    id
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_line_of_the_tables_is_read() {
        let all = load();
        let lines = CITIES.lines().chain(COUNTRIES.lines()).filter(|line| !line.starts_with('#')).count();
        assert_eq!(all.places.len(), lines);
        assert!(all.places.iter().filter(|place| place.level == Level::City).count() >= 300);
    }

    #[test]
    fn ids_are_distinct() {
        let all = load();
        assert_eq!(all.places.iter().map(|place| &place.id).collect::<HashSet<_>>().len(), all.places.len());
    }
}
