//! Google Routes: `POST /directions/v2:computeRoutes`.
//!
//! A route is the great circle and three tenths more, at one speed for each mode of travel. A place that is not known, or that
//! cannot be driven to, gives 200 without `routes`; how well addresses were understood is in `geocodingResults`.

use http::{Method, StatusCode};
use serde_json::{Value, json};

use crate::sandbox::answer::Answer;
use crate::sandbox::asked::Asked;

mod leg;
mod mask;
mod polyline;
mod waypoint;

use leg::Mode;
use mask::Mask;
use waypoint::Waypoint;

/// Where it lives.
pub const PATH: &str = "/directions/v2:computeRoutes";
/// Stops between origin and destination.
const MOST_INTERMEDIATES: usize = 25;

/// What is wrong with a request.
type Wrong = String;

/// The question, as it was received.
pub fn question(asked: &Asked) -> String {
    let body: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
    let stops = body.get("intermediates").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let all = body.get("origin").into_iter().chain(stops).chain(body.get("destination"));
    let text = all.map(waypoint::text).collect::<Vec<_>>().join(" -> ");
    let text = if text.is_empty() { "(none)".to_owned() } else { text };
    match Mode::read(body.get("travelMode")) {
        Ok(Mode::Drive) | Err(_) => text,
        Ok(mode) => format!("{text} (travelMode={})", mode.name()),
    }
}

/// The body that goes with an HTTP error.
pub fn failure(status: StatusCode, message: &str) -> Value {
    let word = match status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..=499 => "INVALID_ARGUMENT",
        501 => "UNIMPLEMENTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status.as_u16(), "message": message, "status": word}})
}

/// Answers one request.
pub fn answer(asked: &Asked) -> Answer {
    let failed = |status, message: &str| Answer::json(status, &failure(status, message));
    if asked.method != Method::POST {
        return failed(StatusCode::NOT_FOUND, "Not found: only POST is served here.");
    }
    if asked.header("x-goog-api-key").or_else(|| asked.query("key")).or_else(|| asked.bearer()).is_none() {
        return failed(StatusCode::FORBIDDEN, "A key or an access token is needed to use this API.");
    }
    match Request::read(asked) {
        Err(wrong) => failed(StatusCode::BAD_REQUEST, &wrong),
        Ok(request) => Answer::ok(&request.mask.apply(&request.response())),
    }
}

/// A request that makes sense.
struct Request {
    mask: Mask,
    mode: Mode,
    stops: Vec<Waypoint>,
    number_enums: bool,
}

impl Request {
    fn read(asked: &Asked) -> Result<Self, Wrong> {
        let mask = mask_of(asked)?;
        let body: Value =
            serde_json::from_slice(&asked.body).map_err(|wrong| format!("Invalid JSON payload received: {wrong}"))?;
        let mode = Mode::read(body.get("travelMode"))?;
        leg::check_preference(body.get("routingPreference"), mode)?;
        let between = body.get("intermediates").and_then(Value::as_array).cloned().unwrap_or_default();
        if between.len() > MOST_INTERMEDIATES {
            return Err(format!("At most {MOST_INTERMEDIATES} intermediates are allowed."));
        }
        let required = |name: &str| body.get(name).cloned().ok_or_else(|| format!("{name} must be set."));
        let all = [vec![required("origin")?], between, vec![required("destination")?]].concat();
        let stops = all.iter().map(Waypoint::read).collect::<Result<_, _>>()?;
        let number_enums = asked.query("$alt").is_some_and(|alt| alt.contains("enum-encoding=int"));
        Ok(Self { mask, mode, stops, number_enums })
    }

    fn response(&self) -> Value {
        let geocoding = self.geocoding();
        let mut response = if geocoding == json!({}) { geocoding } else { json!({"geocodingResults": geocoding}) };
        let points: Option<Vec<_>> = self.stops.iter().map(|stop| stop.spot()).collect();
        let route = points.and_then(|points| leg::route(&points, self.mode, self.number_enums));
        if let (Some(route), Some(response)) = (route, response.as_object_mut()) {
            response.insert("routes".to_owned(), json!([route]));
        }
        response
    }

    /// Only for waypoints that were given as an address.
    fn geocoding(&self) -> Value {
        let mut results = serde_json::Map::new();
        let [origin, between @ .., destination] = self.stops.as_slice() else { return json!({}) };
        for (name, stop) in [("origin", origin), ("destination", destination)] {
            if let Some(result) = stop.geocoding(None) {
                results.insert(name.to_owned(), result);
            }
        }
        let between: Vec<Value> = between.iter().enumerate().filter_map(|(index, stop)| stop.geocoding(Some(index))).collect();
        if !between.is_empty() {
            results.insert("intermediates".to_owned(), between.into());
        }
        results.into()
    }
}

fn mask_of(asked: &Asked) -> Result<Mask, Wrong> {
    let given = asked.header("x-goog-fieldmask").or_else(|| asked.query("$fields")).or_else(|| asked.query("fields"));
    Mask::read(given.ok_or("FieldMask is a required parameter. Name the fields you need in the header X-Goog-FieldMask.")?)
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn post(mask: &str, body: &Value) -> (u16, Value) {
        let mut headers = HeaderMap::new();
        headers.insert("x-goog-api-key", "AIza".parse().unwrap());
        headers.insert("x-goog-fieldmask", mask.parse().unwrap());
        let mut asked = Asked::head(Method::POST, &PATH.parse().unwrap(), headers);
        asked.body = body.to_string().into();
        let answer = answer(&asked);
        (answer.status.as_u16(), serde_json::from_slice(&answer.body).unwrap())
    }

    fn between(origin: &str, destination: &str) -> Value {
        json!({"origin": {"address": origin}, "destination": {"address": destination}})
    }

    #[test]
    fn the_mask_decides_what_comes_back() {
        let trip = between("Delhi", "Jaipur");
        let (status, body) = post("routes.duration, routes.distance_meters", &trip);
        assert_eq!((status, body), (200, json!({"routes": [{"distanceMeters": 305_878, "duration": "16993s"}]})));
        assert_eq!(post("", &trip).0, 400);
        assert_eq!(post("routes.colour", &trip).0, 400);
        assert!(post("*", &trip).1["routes"][0]["polyline"]["encodedPolyline"].is_string());
    }

    #[test]
    fn an_unknown_place_is_200_without_routes() {
        let (status, body) = post("routes.distanceMeters,geocodingResults", &between("Atlantis", "Jaipur"));
        assert_eq!((status, body.get("routes")), (200, None));
        assert_eq!(body["geocodingResults"]["origin"]["geocoderStatus"]["code"], 5);
        assert_eq!(body["geocodingResults"]["destination"]["geocoderStatus"], json!({}));
        assert_eq!(post("routes", &between("Tokyo", "Paris")), (200, json!({})));
    }

    #[test]
    fn what_is_weak_says_so() {
        let results = post("geocodingResults", &between("Qwertyweg 9, Delhi", "India")).1["geocodingResults"].clone();
        assert_eq!(results["origin"]["partialMatch"], true);
        assert_eq!(results["destination"]["type"], json!(["country", "political"]));
        assert_eq!(results["destination"].get("partialMatch"), None);
    }

    #[test]
    fn numbers_stand_for_enum_names() {
        let mut trip = between("Delhi", "Jaipur");
        trip["travelMode"] = json!(3);
        let walk = post("routes.duration", &trip);
        trip["travelMode"] = json!("WALK");
        assert_eq!(post("routes.duration", &trip), walk);
        trip["routingPreference"] = json!(2);
        assert_eq!(post("routes.duration", &trip).1["error"]["status"], "INVALID_ARGUMENT");
        trip["travelMode"] = json!("FLY");
        assert_eq!(post("routes.duration", &trip).0, 400);
    }

    #[test]
    fn a_waypoint_is_exactly_one_thing() {
        let mut trip = between("Delhi", "Jaipur");
        trip["origin"] = json!({"location": {"latLng": {"latitude": 28.6139, "longitude": 77.209}}});
        assert_eq!(post("*", &trip).1["routes"][0]["distanceMeters"], 305_878);
        trip["origin"] = json!({"address": "Delhi", "placeId": "x"});
        assert_eq!(post("*", &trip).0, 400);
        assert_eq!(post("*", &json!({"origin": {"address": "Delhi"}})).0, 400);
    }
}
