//! Google Geocoding v3: `GET /maps/api/geocode/json`. Says everything with 200 and a word in the body.

use http::StatusCode;
use serde_json::{Value, json};

use super::{any_query, country, with_parameters};
use crate::sandbox::answer::Answer;
use crate::sandbox::asked::Asked;
use crate::sandbox::gazetteer::point::{Coordinates, coordinates};
use crate::sandbox::gazetteer::{GAZETTEER, Level, Match, Place, Within};

/// Where it lives.
pub const PATH: &str = "/maps/api/geocode/json";

/// The question, as it was received.
pub fn question(asked: &Asked) -> String {
    let main = any_query(asked, &["address", "latlng", "place_id"]);
    with_parameters(main.unwrap_or("(none)"), asked, &["components", "bounds", "region", "language", "result_type"])
}

/// Answers one request.
pub fn answer(asked: &Asked) -> Answer {
    if asked.query("key").is_none() {
        return refused("REQUEST_DENIED", "A key is needed to use this API.");
    }
    match search(asked) {
        Err(what) => refused("INVALID_REQUEST", what),
        Ok(None) => Answer::ok(&json!({"results": [], "status": "ZERO_RESULTS"})),
        Ok(Some(found)) => Answer::ok(&json!({"results": [result(found)], "status": "OK"})),
    }
}

/// The body that goes with an HTTP error.
pub fn failure(status: StatusCode) -> Value {
    let word = match status.as_u16() {
        429 => "OVER_QUERY_LIMIT",
        401 | 403 => "REQUEST_DENIED",
        400..=499 => "INVALID_REQUEST",
        _ => "UNKNOWN_ERROR",
    };
    json!({"error_message": "The request failed.", "results": [], "status": word})
}

/// 200 and a word that means no; not billed.
fn refused(status: &str, message: &str) -> Answer {
    Answer::ok(&json!({"error_message": message, "results": [], "status": status})).billed(0)
}

fn search(asked: &Asked) -> Result<Option<Match>, &'static str> {
    let whole = |place: &'static Place| Match { place, partial: false };
    if let Some(id) = asked.query("place_id") {
        return GAZETTEER.by_id(id).map(|place| Some(whole(place))).ok_or("Invalid 'place_id' parameter.");
    }
    if let Some(text) = asked.query("latlng") {
        let Coordinates::At(point) = coordinates(text) else { return Err("Invalid 'latlng' parameter.") };
        return Ok(GAZETTEER.nearest(point).map(whole));
    }
    let components = Components::read(asked.query("components").unwrap_or_default())?;
    let text = asked.query("address").map_or_else(|| components.text.join(", "), str::to_owned);
    if text.is_empty() && components.country.is_none() {
        return Err("Missing the 'address', 'components', 'latlng' or 'place_id' parameter.");
    }
    if let Coordinates::At(point) = coordinates(&text) {
        return Ok(GAZETTEER.nearest(point).map(whole));
    }
    let country_code = components.country.as_deref().and_then(code);
    if text.is_empty() {
        return Ok(country_code.and_then(|code| GAZETTEER.country(&code)).map(whole));
    }
    let only = country_code.into_iter().collect();
    Ok(GAZETTEER.find(&text, &Within { only, prefer: asked.query("region").map(country) }))
}

/// A country filter is a code or a name.
fn code(given: &str) -> Option<String> {
    if given.len() == 2 {
        return Some(country(given));
    }
    GAZETTEER.find(given, &Within::default()).map(|found| found.place.country.code.to_owned())
}

/// `country:DE|locality:Berlin`.
#[derive(Debug, Default)]
struct Components {
    country: Option<String>,
    text: Vec<String>,
}

impl Components {
    fn read(given: &str) -> Result<Self, &'static str> {
        let mut read = Self::default();
        for part in given.split('|').filter(|part| !part.trim().is_empty()) {
            let (kind, value) = part.split_once(':').ok_or("Invalid 'components' parameter.")?;
            match kind.trim() {
                "country" if read.country.is_some() => return Err("Invalid 'components' parameter: one country at most."),
                "country" => read.country = Some(value.trim().to_owned()),
                "locality" | "administrative_area" | "route" | "postal_code" => read.text.push(value.trim().to_owned()),
                _ => return Err("Invalid 'components' parameter."),
            }
        }
        Ok(read)
    }
}

fn result(found: Match) -> Value {
    let place = found.place;
    let corners = place.at.bounds(if place.level == Level::City { 0.1 } else { 4.0 });
    let mut result = json!({
        "address_components": components(place),
        "formatted_address": place.formatted(),
        "geometry": {
            "bounds": corners,
            "location": place.at.json(),
            "location_type": "APPROXIMATE",
            "viewport": corners,
        },
        "place_id": place.id,
        "types": types(place),
    });
    if let (true, Some(result)) = (found.partial, result.as_object_mut()) {
        result.insert("partial_match".to_owned(), true.into());
    }
    result
}

/// Google's type tags for a place.
pub fn types(place: &Place) -> Value {
    match place.level {
        Level::City => json!(["locality", "political"]),
        Level::Country => json!(["country", "political"]),
    }
}

fn components(place: &Place) -> Vec<Value> {
    let component =
        |long: &str, short: &str, kind: &str| json!({"long_name": long, "short_name": short, "types": [kind, "political"]});
    let mut all = Vec::new();
    if place.level == Level::City {
        all.push(component(place.name, place.name, "locality"));
    }
    if !place.region.is_empty() {
        all.push(component(place.region, place.region, "administrative_area_level_1"));
    }
    all.push(component(place.country.name, place.country.code, "country"));
    all
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;

    fn get(query: &str) -> Value {
        let uri = format!("{PATH}?{query}").parse().unwrap();
        let answer = answer(&Asked::head(Method::GET, &uri, HeaderMap::new()));
        assert_eq!(answer.status, StatusCode::OK);
        serde_json::from_slice(&answer.body).unwrap()
    }

    #[test]
    fn one_place_is_found_by_address_components_coordinates_and_id() {
        let by_address = get("address=Jaipur,+India&key=AIza");
        assert_eq!(by_address["results"][0]["formatted_address"], "Jaipur, Rajasthan, India");
        assert_eq!(by_address["results"][0].get("partial_match"), None);
        let id = by_address["results"][0]["place_id"].as_str().unwrap();
        assert_eq!(get(&format!("place_id={id}&key=k")), by_address);
        assert_eq!(get("components=locality:Jaipur%7Ccountry:IN&key=k"), by_address);
        assert_eq!(get("latlng=26.91,75.79&key=k"), by_address);
    }

    #[test]
    fn the_word_in_the_body_says_what_came_of_it() {
        assert_eq!(get("address=Berlin")["status"], "REQUEST_DENIED");
        assert_eq!(get("key=k")["status"], "INVALID_REQUEST");
        assert_eq!(get("latlng=abc&key=k")["status"], "INVALID_REQUEST");
        assert_eq!(get("address=Atlantis&key=k")["status"], "ZERO_RESULTS");
        assert_eq!(get("address=Berlin&components=country:US&key=k")["status"], "ZERO_RESULTS");
        assert_eq!(get("components=country:DE%7Ccountry:FR&key=k")["status"], "INVALID_REQUEST");
    }

    #[test]
    fn what_is_weak_says_so() {
        assert_eq!(get("address=Qwertyweg+1,+Berlin&key=k")["results"][0]["partial_match"], true);
        assert_eq!(get("address=Germany&key=k")["results"][0]["types"][0], "country");
        assert_eq!(get("components=country:Germany&key=k")["results"][0]["types"][0], "country");
    }
}
