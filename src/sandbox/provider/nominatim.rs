//! Nominatim: `GET /search` and `GET /reverse`. No key, but a `User-Agent` or `Referer` that says who asks.
//!
//! Like the real one it has no word for a partial match: when words are left over, nothing is found.

use http::StatusCode;
use serde_json::{Value, json};

use super::{any_query, countries, with_parameters};
use crate::sandbox::answer::Answer;
use crate::sandbox::asked::Asked;
use crate::sandbox::gazetteer::point::{Coordinates, coordinates};
use crate::sandbox::gazetteer::{GAZETTEER, Level, Place, Within};

/// Where it searches.
pub const SEARCH: &str = "/search";
/// Where it looks coordinates up.
pub const REVERSE: &str = "/reverse";

const STRUCTURED: [&str; 7] = ["amenity", "street", "city", "county", "state", "postalcode", "country"];

/// The question, as it was received.
pub fn question(asked: &Asked) -> String {
    let main = if asked.path == REVERSE { point(asked) } else { text(asked) };
    let main = if main.is_empty() { "(none)" } else { &main };
    with_parameters(main, asked, &["countrycodes", "accept-language", "viewbox", "zoom"])
}

/// Answers one request.
pub fn answer(asked: &Asked) -> Answer {
    if asked.header("user-agent").or_else(|| asked.header("referer")).is_none() {
        return failed(StatusCode::FORBIDDEN, "Access blocked: a User-Agent or Referer must say who asks.");
    }
    let format = asked.query("format").unwrap_or("jsonv2");
    if !matches!(format, "json" | "jsonv2") {
        return failed(StatusCode::BAD_REQUEST, "Parameter 'format' must be one of: json, jsonv2");
    }
    if asked.path == REVERSE { reverse(asked, format) } else { search(asked, format) }
}

fn search(asked: &Asked, format: &str) -> Answer {
    let text = text(asked);
    if text.is_empty() {
        return failed(StatusCode::BAD_REQUEST, "Nothing to search for.");
    }
    let found = if let Coordinates::At(point) = coordinates(&text) {
        GAZETTEER.nearest(point)
    } else {
        let within = Within { only: countries(asked.query("countrycodes")), prefer: None };
        GAZETTEER.find(&text, &within).filter(|found| !found.partial).map(|found| found.place)
    };
    let address = asked.query("addressdetails") == Some("1");
    let results: Vec<Value> = found.into_iter().map(|place| result(place, format, address)).collect();
    Answer::ok(&json!(results))
}

fn reverse(asked: &Asked, format: &str) -> Answer {
    let Coordinates::At(point) = coordinates(&point(asked)) else {
        return failed(StatusCode::BAD_REQUEST, "Need coordinates in the parameters 'lat' and 'lon'.");
    };
    let address = asked.query("addressdetails") != Some("0");
    match GAZETTEER.nearest(point) {
        Some(place) => Answer::ok(&result(place, format, address)),
        None => Answer::ok(&json!({"error": "Unable to geocode"})),
    }
}

/// The text to search for, free or in fields.
fn text(asked: &Asked) -> String {
    match any_query(asked, &["q"]) {
        Some(text) => text.to_owned(),
        None => STRUCTURED.iter().filter_map(|name| asked.query(name)).collect::<Vec<_>>().join(", "),
    }
}

fn point(asked: &Asked) -> String {
    let (lat, lon) = (asked.query("lat"), asked.query("lon"));
    lat.zip(lon).map(|(lat, lon)| format!("{lat},{lon}")).unwrap_or_default()
}

fn failed(status: StatusCode, message: &str) -> Answer {
    Answer::json(status, &json!({"error": {"code": status.as_u16(), "message": message}}))
}

fn result(place: &Place, format: &str, address: bool) -> Value {
    let (kind, rank, importance, reach) = match place.level {
        Level::City => ("city", 16, 0.7, 0.16),
        Level::Country => ("country", 4, 0.9, 4.0),
    };
    let (low, high) = place.at.corners(reach);
    let sides = [low.lat, high.lat, low.lng, high.lng].map(degrees);
    let boundary = if format == "json" { "class" } else { "category" };
    let number = number(&place.id);
    let mut result = json!({
        "addresstype": kind,
        "boundingbox": sides,
        "display_name": place.formatted(),
        "importance": importance,
        "lat": degrees(place.at.lat),
        "licence": "Data © OpenStreetMap contributors, ODbL 1.0. http://osm.org/copyright",
        "lon": degrees(place.at.lng),
        "name": place.name,
        "osm_id": number,
        "osm_type": "relation",
        "place_id": number,
        "place_rank": rank,
        "type": "administrative",
        boundary: "boundary",
    });
    if let (true, Some(result)) = (address, result.as_object_mut()) {
        result.insert("address".to_owned(), details(place, kind));
    }
    result
}

fn details(place: &Place, kind: &str) -> Value {
    let mut details = json!({
        kind: place.name,
        "country": place.country.name,
        "country_code": place.country.code.to_ascii_lowercase(),
    });
    if let (false, Some(details)) = (place.region.is_empty(), details.as_object_mut()) {
        details.insert("state".to_owned(), place.region.into());
    }
    details
}

fn degrees(value: f64) -> String {
    format!("{value:.7}")
}

/// A number made of a place's id.
fn number(id: &str) -> u32 {
    id.bytes().fold(17, |sum: u32, byte| sum.wrapping_mul(31).wrapping_add(byte.into())) / 8
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;

    fn get(uri: &str, agent: &str) -> (u16, Value) {
        let mut headers = HeaderMap::new();
        headers.insert("user-agent", agent.parse().unwrap());
        let answer = answer(&Asked::head(Method::GET, &uri.parse().unwrap(), headers));
        (answer.status.as_u16(), serde_json::from_slice(&answer.body).unwrap())
    }

    #[test]
    fn results_are_an_array_with_coordinates_as_text() {
        let (_, body) = get("/search?q=Tokyo&format=json&addressdetails=1", "demo");
        assert_eq!((&body[0]["lat"], &body[0]["class"]), (&json!("35.6762000"), &json!("boundary")));
        assert_eq!(body[0]["address"]["country_code"], "jp");
        assert_eq!(get("/search?city=Tokyo&country=Japan", "demo").1[0]["category"], "boundary");
        assert_eq!(get("/search?q=Japan", "demo").1[0]["addresstype"], "country");
    }

    #[test]
    fn what_is_not_found_is_an_empty_array_and_reversed_an_error() {
        assert_eq!(get("/search?q=Atlantis", "demo"), (200, json!([])));
        assert_eq!(get("/search?q=Qwertyweg,+Berlin", "demo"), (200, json!([])));
        assert_eq!(get("/reverse?lat=0&lon=-30", "demo"), (200, json!({"error": "Unable to geocode"})));
        assert_eq!(get("/reverse?lat=52.5&lon=13.4", "demo").1["name"], "Berlin");
    }

    #[test]
    fn faults_of_the_caller_have_their_status() {
        assert_eq!(get("/search?q=Tokyo", " ").0, 403);
        assert_eq!(get("/search", "demo").0, 400);
        assert_eq!(get("/search?q=Tokyo&format=xml", "demo").0, 400);
        assert_eq!(get("/reverse?lat=91&lon=0", "demo").0, 400);
    }
}
