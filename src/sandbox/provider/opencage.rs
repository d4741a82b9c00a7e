//! OpenCage: `GET /geocode/v1/json`.
//!
//! A city answers with confidence 7, a city with words left over with 3, a country with 1.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use super::{countries, with_parameters};
use crate::sandbox::answer::Answer;
use crate::sandbox::asked::Asked;
use crate::sandbox::gazetteer::point::{Coordinates, coordinates};
use crate::sandbox::gazetteer::{GAZETTEER, Level, Match, Within};

/// Where it lives.
pub const PATH: &str = "/geocode/v1/json";

/// The question, as it was received.
pub fn question(asked: &Asked) -> String {
    let main = asked.query("q").unwrap_or("(none)");
    with_parameters(main, asked, &["language", "countrycode", "bounds", "proximity", "min_confidence"])
}

/// Answers one request.
pub fn answer(asked: &Asked) -> Answer {
    if asked.method != Method::GET {
        return failed(StatusCode::METHOD_NOT_ALLOWED, "only GET is served");
    }
    if asked.query("key").is_none() {
        return failed(StatusCode::UNAUTHORIZED, "missing API key");
    }
    let Some(text) = asked.query("q") else { return failed(StatusCode::BAD_REQUEST, "missing or bad query") };
    match search(text, asked.query("countrycode")) {
        Err(what) => failed(StatusCode::BAD_REQUEST, what),
        Ok(found) => {
            let least = asked.query("min_confidence").and_then(|least| least.parse().ok()).unwrap_or(0);
            let found = found.filter(|found| confidence(*found) >= least);
            let results: Vec<Value> = found.into_iter().map(result).collect();
            Answer::ok(&body(StatusCode::OK, "OK", &results))
        }
    }
}

fn search(text: &str, within: Option<&str>) -> Result<Option<Match>, &'static str> {
    match coordinates(text) {
        Coordinates::At(point) => Ok(GAZETTEER.nearest(point).map(|place| Match { place, partial: false })),
        Coordinates::OffTheGlobe => Err("invalid coordinates"),
        Coordinates::NotThese if text.trim().chars().count() < 2 => Err("query too short"),
        Coordinates::NotThese => Ok(GAZETTEER.find(text, &Within { only: countries(within), prefer: None })),
    }
}

fn failed(status: StatusCode, what: &str) -> Answer {
    Answer::json(status, &body(status, what, &[]))
}

/// The body all answers have.
pub fn body(status: StatusCode, message: &str, results: &[Value]) -> Value {
    json!({
        "documentation": "https://opencagedata.com/api",
        "results": results,
        "status": {"code": status.as_u16(), "message": message},
        "total_results": results.len(),
    })
}

fn confidence(found: Match) -> u8 {
    match (found.place.level, found.partial) {
        (Level::City, false) => 7,
        (Level::City, true) => 3,
        (Level::Country, _) => 1,
    }
}

fn result(found: Match) -> Value {
    let place = found.place;
    let (kind, reach) = if place.level == Level::City { ("city", 0.1) } else { ("country", 4.0) };
    let mut components = json!({
        "ISO_3166-1_alpha-2": place.country.code,
        "_category": "place",
        "_normalized_city": place.name,
        "_type": kind,
        "country": place.country.name,
        "country_code": place.country.code.to_ascii_lowercase(),
        kind: place.name,
    });
    if let Some(components) = components.as_object_mut() {
        if place.level == Level::Country {
            components.remove("_normalized_city");
        }
        if !place.region.is_empty() {
            components.insert("state".to_owned(), place.region.into());
        }
    }
    json!({
        "bounds": place.at.bounds(reach),
        "components": components,
        "confidence": confidence(found),
        "formatted": place.formatted(),
        "geometry": place.at.json(),
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn get(uri: &str) -> (u16, Value) {
        let answer = answer(&Asked::head(Method::GET, &uri.parse().unwrap(), HeaderMap::new()));
        (answer.status.as_u16(), serde_json::from_slice(&answer.body).unwrap())
    }

    #[test]
    fn a_city_is_found_by_name_and_by_coordinates() {
        let (status, body) = get("/geocode/v1/json?q=Chamb%C3%A9ry,+France&key=k");
        assert_eq!((status, &body["results"][0]["confidence"]), (200, &json!(7)));
        assert_eq!(body["results"][0]["formatted"], "Chambéry, Savoie, France");
        let (_, body) = get("/geocode/v1/json?q=35.68%2C139.70&key=k");
        assert_eq!(body["results"][0]["components"]["city"], "Tokyo");
    }

    #[test]
    fn what_is_vague_says_so_and_what_is_unknown_is_empty() {
        assert_eq!(get("/geocode/v1/json?q=Germany&key=k").1["results"][0]["confidence"], 1);
        assert_eq!(get("/geocode/v1/json?q=Qwertyweg+7,+Berlin&key=k").1["results"][0]["confidence"], 3);
        assert_eq!(get("/geocode/v1/json?q=Atlantis&key=k"), (200, body(StatusCode::OK, "OK", &[])));
    }

    #[test]
    fn faults_of_the_caller_have_their_status() {
        assert_eq!(get("/geocode/v1/json?q=Berlin").0, 401);
        assert_eq!(get("/geocode/v1/json?key=k").0, 400);
        assert_eq!(get("/geocode/v1/json?q=95,10&key=k").1["status"]["message"], "invalid coordinates");
    }
}
