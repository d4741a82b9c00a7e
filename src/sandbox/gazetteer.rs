//! The places the sandbox knows: some five hundred real cities and their countries, and how a question is matched to them.
//!
//! Every word of a question counts: a city with nothing left over is a full match, one with words nobody can explain is a
//! *partial* match (the weak answer of a real geocoder), a country alone is a country, and words that name neither are nothing.

use std::collections::HashMap;
use std::sync::LazyLock;

pub mod fold;
mod load;
pub mod point;

use fold::words;
use point::Point;

/// The one gazetteer, read on first use.
pub static GAZETTEER: LazyLock<Gazetteer> = LazyLock::new(load::load);

/// No name has more words.
const LONGEST: usize = 6;
/// Words of a question beyond these are not looked at.
const MOST_WORDS: usize = 40;
/// A reverse look-up answers with the nearest city no farther than this.
const NEAR_METERS: f64 = 100_000.0;

/// What a place is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// A town.
    City,
    /// A whole country: too vague for most uses.
    Country,
}

/// A country.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Country {
    /// ISO 3166-1 alpha-2, upper case.
    pub code: &'static str,
    /// English name.
    pub name: &'static str,
    /// One can drive between any two places with the same word here.
    pub land: &'static str,
}

/// A city or a country.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// City or country.
    pub level: Level,
    /// Its name; for a country the country's.
    pub name: &'static str,
    /// First-level region, or empty.
    pub region: &'static str,
    /// Its country.
    pub country: Country,
    /// Where it is.
    pub at: Point,
    /// A stable id in the shape of Google's.
    pub id: String,
    /// Folded names of the region.
    regions: Vec<String>,
}

impl Place {
    /// `Jaipur, Rajasthan, India`.
    pub fn formatted(&self) -> String {
        let mut parts = vec![self.name];
        if self.level == Level::City {
            if !self.region.is_empty() && self.region != self.name {
                parts.push(self.region);
            }
            if self.country.name != self.name {
                parts.push(self.country.name);
            }
        }
        parts.join(", ")
    }
}

/// A place found for a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Match {
    /// The place.
    pub place: &'static Place,
    /// Some words of the question were not understood.
    pub partial: bool,
}

/// Where to look.
#[derive(Clone, Debug, Default)]
pub struct Within {
    /// Only in these countries (ISO codes in any case); none = everywhere.
    pub only: Vec<String>,
    /// Of equally good places, the one in this country.
    pub prefer: Option<String>,
}

impl Within {
    fn allows(&self, place: &Place) -> bool {
        self.only.is_empty() || self.only.iter().any(|code| code.eq_ignore_ascii_case(place.country.code))
    }

    fn prefers(&self, place: &Place) -> bool {
        self.prefer.as_ref().is_some_and(|code| code.eq_ignore_ascii_case(place.country.code))
    }
}

/// All places, with the indexes to find them.
#[derive(Debug, Default)]
pub struct Gazetteer {
    places: Vec<Place>,
    cities: HashMap<String, Vec<usize>>,
    countries: HashMap<String, usize>,
}

impl Gazetteer {
    /// The place a text means. Coordinates are not text: see [`point::coordinates`].
    pub fn find(&'static self, text: &str, within: &Within) -> Option<Match> {
        let mut words = words(text);
        words.truncate(MOST_WORDS);
        let city = spans(&words).flat_map(|span| self.in_span(&words, &span, within)).min_by_key(|found| found.0);
        city.or_else(|| self.country_in(&words, within))
            .map(|((unexplained, ..), place)| Match { place, partial: unexplained > 0 })
    }

    /// The nearest city, if one is near.
    pub fn nearest(&'static self, at: Point) -> Option<&'static Place> {
        let cities = self.places.iter().filter(|place| place.level == Level::City);
        let nearest = cities.map(|place| (at.meters_to(place.at), place)).min_by(|a, b| a.0.total_cmp(&b.0))?;
        (nearest.0 <= NEAR_METERS).then_some(nearest.1)
    }

    /// The place with this id.
    pub fn by_id(&'static self, id: &str) -> Option<&'static Place> {
        self.places.iter().find(|place| place.id == id)
    }

    /// The country with this ISO code.
    pub fn country(&'static self, code: &str) -> Option<&'static Place> {
        let mut countries = self.places.iter().filter(|place| place.level == Level::Country);
        countries.find(|place| place.country.code.eq_ignore_ascii_case(code))
    }

    /// All cities of that name, each with its rank: fewest words unexplained, then the preferred country, then the file's order.
    fn in_span(&'static self, words: &[String], span: &Span, within: &Within) -> Vec<(Rank, &'static Place)> {
        let named = self.cities.get(&span.name).map(Vec::as_slice).unwrap_or_default();
        let places = named.iter().filter_map(|index| Some((*index, self.places.get(*index)?)));
        places
            .filter(|(_, place)| within.allows(place))
            .map(|(index, place)| {
                let left = self.unexplained(words.get(..span.from).unwrap_or_default(), place)
                    + self.unexplained(words.get(span.to..).unwrap_or_default(), place);
                ((left, !within.prefers(place), index), place)
            })
            .collect()
    }

    fn country_in(&'static self, words: &[String], within: &Within) -> Option<(Rank, &'static Place)> {
        spans(words)
            .filter(|span| can_stand_alone(&span.name))
            .filter_map(|span| {
                let index = *self.countries.get(&span.name)?;
                let left = words.len().saturating_sub(span.to.saturating_sub(span.from));
                self.places.get(index).map(|place| ((left, false, index), place))
            })
            .filter(|(_, place)| within.allows(place))
            .min_by_key(|found| found.0)
    }

    /// How many of the words around a city's name say nothing about it.
    fn unexplained(&self, words: &[String], place: &Place) -> usize {
        let explained = spans(words).find(|span| self.belongs(&span.name, place));
        match explained {
            None => words.len(),
            Some(span) => {
                self.unexplained(words.get(..span.from).unwrap_or_default(), place)
                    + self.unexplained(words.get(span.to..).unwrap_or_default(), place)
            }
        }
    }

    /// Is this the name of the place's country or region?
    fn belongs(&self, name: &str, place: &Place) -> bool {
        let country = self.countries.get(name).and_then(|index| self.places.get(*index));
        name.eq_ignore_ascii_case(place.country.code)
            || country.is_some_and(|country| country.country.code == place.country.code)
            || place.regions.iter().any(|region| region == name)
    }
}

/// Words unexplained, not in the preferred country, position in the file.
type Rank = (usize, bool, usize);

/// Some words in a row.
struct Span {
    from: usize,
    to: usize,
    name: String,
}

/// All runs of words, the longest first.
fn spans(words: &[String]) -> impl Iterator<Item = Span> + '_ {
    (1..=LONGEST.min(words.len())).rev().flat_map(move |length| {
        words.windows(length).enumerate().map(move |(from, run)| Span {
            from,
            to: from.saturating_add(length),
            name: run.join(" "),
        })
    })
}

/// `ARE` and `CAN` explain a city's surroundings, but alone they are rather words than countries.
fn can_stand_alone(name: &str) -> bool {
    name.len() > 3 || matches!(name, "uk" | "usa" | "uae" | "ksa" | "u k")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(text: &str) -> Option<(&'static str, &'static str, bool)> {
        let found = GAZETTEER.find(text, &Within::default())?;
        Some((found.place.name, found.place.country.code, found.partial))
    }

    #[test]
    fn one_place_has_many_spellings() {
        for text in ["São Paulo", "sao paulo", "SAO  PAULO, Brasil", "São Paulo, SP, Brazil", "Brazil; são paulo"] {
            assert_eq!(find(text), Some(("São Paulo", "BR", false)), "{text}");
        }
        assert_eq!(find("Zuerich, CH"), Some(("Zürich", "CH", false)));
        assert_eq!(find("New Delhi, India"), Some(("Delhi", "IN", false)));
        assert_eq!(find("chambery france"), Some(("Chambéry", "FR", false)));
    }

    #[test]
    fn a_region_or_country_tells_namesakes_apart() {
        assert_eq!(find("Paris"), Some(("Paris", "FR", false)));
        assert_eq!(find("Paris, Texas"), Some(("Paris", "US", false)));
        assert_eq!(find("London, ON, Canada"), Some(("London", "CA", false)));
        assert_eq!(find("Atlanta, Georgia"), Some(("Atlanta", "US", false)));
        let canada = Within { prefer: Some("ca".into()), ..Within::default() };
        assert_eq!(GAZETTEER.find("London", &canada).unwrap().place.country.code, "CA");
        let only = Within { only: vec!["us".into()], ..Within::default() };
        assert_eq!(GAZETTEER.find("Berlin", &only), None);
    }

    #[test]
    fn words_nobody_can_explain_make_a_match_partial() {
        assert_eq!(find("Qwertystrasse 99, Berlin"), Some(("Berlin", "DE", true)));
        assert_eq!(find("Berlin, France"), Some(("Berlin", "DE", true)));
        assert_eq!(find("Xyzzy, Germany"), Some(("Germany", "DE", true)));
    }

    #[test]
    fn a_country_alone_is_a_country_unless_it_is_a_city_too() {
        assert_eq!(find("Deutschland"), Some(("Germany", "DE", false)));
        assert_eq!(find("Singapore").map(|found| found.0), Some("Singapore"));
        assert_eq!(GAZETTEER.find("Singapore", &Within::default()).unwrap().place.level, Level::City);
        assert_eq!(find("can we go"), None);
    }

    #[test]
    fn what_is_unknown_is_not_found() {
        for text in ["", "asdfghjkl", "Atlantis", "!!!", "42"] {
            assert_eq!(find(text), None, "{text}");
        }
    }

    #[test]
    fn the_nearest_city_answers_if_it_is_near() {
        assert_eq!(GAZETTEER.nearest(Point { lat: 52.4, lng: 13.1 }).unwrap().name, "Berlin");
        assert_eq!(GAZETTEER.nearest(Point { lat: 0.0, lng: -30.0 }), None);
    }
}
