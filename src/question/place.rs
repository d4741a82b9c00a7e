//! Places as Google's Routes API takes them: an address, a place id or coordinates.

use serde_json::{Map, Value as Json, json};

use super::latlng::{self, Point};
use super::{Asked, Invalid, Raw, Value, scalar, text};

/// Decimal places of coordinates: about a metre.
const PLACES: u32 = 5;

/// Longest place id, and longest token of a navigation point.
const MAX_ID: usize = 1024;

/// A waypoint's one place.
enum Spot {
    Address(Value),
    Id(String),
    Point(Point),
    Navigation(String),
}

/// Reads `place_id:ID`, `lat,lng`, any other text as an address, or a waypoint object. Its modifiers (`heading`, `via`,
/// `vehicleStopover`, `sideOfRoad`) are part of the question; a flag that is false is one that is absent.
pub fn read(raw: &Raw<'_>, min: usize, max: usize) -> Result<Value, Invalid> {
    match raw {
        Raw::Json(Json::Object(members)) => waypoint(members, min, max),
        Raw::Pair(lat, lng) => Ok(value(Spot::Point(Point::new(lat, lng, PLACES)?), Map::new(), None)),
        _ => Ok(value(from_text(raw.string()?, min, max)?, Map::new(), None)),
    }
}

fn from_text(raw: &str, min: usize, max: usize) -> Result<Spot, Invalid> {
    // Neither an identifier nor two numbers has a space between letters, so most addresses need no second look.
    if is_plainly_words(raw) {
        return text::read(raw, min, max).map(Spot::Address);
    }
    let typed = text::typed(raw);
    let typed = typed.as_deref().unwrap_or_default();
    if let Some(id) = typed.strip_prefix("place_id:") {
        return identifier(id.trim()).map(Spot::Id);
    }
    match latlng::numbers(typed) {
        Some((lat, lng)) => Point::new(lat, lng, PLACES).map(Spot::Point),
        None => text::read(raw, min, max).map(Spot::Address),
    }
}

/// ASCII with two letters on either side of one space: `Residency Road`.
fn is_plainly_words(raw: &str) -> bool {
    let letters = |at: &[u8]| matches!(at, [a, b, b' ', c, d] if [a, b, c, d].iter().all(|b| b.is_ascii_alphabetic()));
    raw.is_ascii() && memchr::memchr(b':', raw.as_bytes()).is_none() && raw.as_bytes().windows(5).any(letters)
}

fn waypoint(members: &Map<String, Json>, min: usize, max: usize) -> Result<Value, Invalid> {
    let (mut spots, mut flags, mut heading) = (Vec::new(), Map::new(), None);
    for (name, member) in members {
        let raw = Raw::Json(member);
        match name.as_str() {
            "address" => spots.push(Spot::Address(text::read(raw.string()?, min, max)?)),
            "placeId" | "place_id" => spots.push(Spot::Id(identifier(raw.string()?)?)),
            "navigationPointToken" | "navigation_point_token" => spots.push(Spot::Navigation(identifier(raw.string()?)?)),
            "location" => {
                let (point, degrees) = location(member)?;
                spots.push(Spot::Point(point));
                heading = degrees;
            }
            "via" => flag("via", &raw, &mut flags)?,
            "vehicleStopover" | "vehicle_stopover" => flag("vehicleStopover", &raw, &mut flags)?,
            "sideOfRoad" | "side_of_road" => flag("sideOfRoad", &raw, &mut flags)?,
            _ => return Err(Invalid::new("has a member that no waypoint has")),
        }
    }
    match (spots.pop(), spots.is_empty()) {
        (Some(spot), true) => Ok(value(spot, flags, heading)),
        _ => Err(Invalid::new("must have exactly one of address, placeId and location")),
    }
}

/// `{"latLng": {..}, "heading": 0..360}`.
fn location(member: &Json) -> Result<(Point, Option<i64>), Invalid> {
    let wrong = || Invalid::new("location must have a latLng and at most a heading");
    let members = member.as_object().ok_or_else(wrong)?;
    let point = members.get("latLng").or_else(|| members.get("lat_lng")).and_then(Json::as_object).ok_or_else(wrong)?;
    let point = latlng::from_object(point, PLACES)?;
    let heading = members.get("heading");
    if members.len() != 1 + usize::from(heading.is_some()) {
        return Err(wrong());
    }
    let heading = heading.map(|h| scalar::integer(&Raw::Json(h).string_or_number()?, Some(0), Some(360))).transpose();
    let heading = heading.map_err(|why| Invalid::new(format!("heading {}", why.reason)))?;
    Ok((point, heading.and_then(|h| h.asked.json().as_i64())))
}

fn flag(name: &str, raw: &Raw<'_>, flags: &mut Map<String, Json>) -> Result<(), Invalid> {
    let Raw::Json(Json::Bool(on)) = raw else { return Err(Invalid::new(format!("{name} must be true or false"))) };
    if flags.contains_key(name) {
        return Err(Invalid::new(format!("{name} must be given once")));
    }
    if *on {
        flags.insert(name.to_owned(), Json::Bool(true));
    }
    Ok(())
}

/// An identifier of Google's: URL-safe characters, letter case kept.
fn identifier(raw: &str) -> Result<String, Invalid> {
    let fits = !raw.is_empty() && raw.len() <= MAX_ID;
    if fits && raw.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_=".contains(&b)) {
        return Ok(raw.to_owned());
    }
    Err(Invalid::new("must be a place id as Google gave it"))
}

fn value(spot: Spot, flags: Map<String, Json>, heading: Option<i64>) -> Value {
    let spot = match spot {
        // As nearly every place is given: its waypoint is made where it is sent, not for every hit.
        Spot::Address(Value { asked: Asked::Text(text), key }) if flags.is_empty() && heading.is_none() => {
            return Value { asked: Asked::Address(text), key: ["address=", &key].concat() };
        }
        spot => spot,
    };
    let mut key: String = flags.keys().flat_map(|name| [name, ";"]).collect();
    if let Some(degrees) = heading {
        key.extend(["heading=", &degrees.to_string(), ";"]);
    }
    let (text, name, member, tail) = match spot {
        Spot::Address(address) => (address.asked.text().into_owned(), "address", address.asked.json(), address.key),
        Spot::Id(id) => (format!("place_id:{id}"), "placeId", json!(id), id),
        Spot::Navigation(token) => (token.clone(), "navigationPointToken", json!(token), token),
        Spot::Point(point) => (point.text(), "location", json!({"latLng": point.json()}), point.text()),
    };
    key.extend([name, "=", &tail]);
    let mut waypoint = flags;
    waypoint.insert(name.to_owned(), member);
    let location = waypoint.get_mut("location").and_then(Json::as_object_mut);
    if let (Some(location), Some(degrees)) = (location, heading) {
        location.insert("heading".to_owned(), json!(degrees));
    }
    Value { asked: Asked::Typed { text, json: Box::new(Json::Object(waypoint)) }, key }
}

#[cfg(test)]
mod tests;
