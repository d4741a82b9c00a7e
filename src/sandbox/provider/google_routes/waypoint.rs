//! One stop of a route.

use serde_json::{Value, json};

use super::Wrong;
use crate::sandbox::gazetteer::point::{Coordinates, Point, coordinates};
use crate::sandbox::gazetteer::{GAZETTEER, Match, Within};
use crate::sandbox::provider::google_geocoding::types;

/// A stop as it was understood.
#[derive(Clone, Copy, Debug)]
pub enum Waypoint {
    /// A point or a place id.
    Spot(Spot),
    /// An address, and what it means if it means anything.
    Address(Option<Match>),
}

/// A point, and the landmass it is on as far as that is known.
#[derive(Clone, Copy, Debug)]
pub struct Spot {
    /// Where it is.
    pub at: Point,
    /// See [`Country::land`](crate::sandbox::gazetteer::Country::land).
    pub land: Option<&'static str>,
}

impl Spot {
    fn at(point: Point) -> Self {
        Self { at: point, land: GAZETTEER.nearest(point).map(|place| place.country.land) }
    }
}

impl Waypoint {
    /// Reads a waypoint of the request.
    pub fn read(given: &Value) -> Result<Self, Wrong> {
        let (address, id, point) = (text_at(given, "/address"), text_at(given, "/placeId"), given.pointer("/location/latLng"));
        match (address, id, point) {
            (Some(address), None, None) => Ok(Self::address(address)),
            (None, Some(id), None) => {
                let place = GAZETTEER.by_id(id).ok_or_else(|| format!("Invalid place ID: {id}"))?;
                Ok(Self::Spot(Spot { at: place.at, land: Some(place.country.land) }))
            }
            (None, None, Some(point)) => {
                let part = |name: &str| point.get(name).map_or(Some(0.0), Value::as_f64);
                let point = part("latitude").zip(part("longitude")).and_then(|(lat, lng)| Point::new(lat, lng));
                point.map(|point| Self::Spot(Spot::at(point))).ok_or_else(|| "Invalid location.latLng.".to_owned())
            }
            _ => Err("A waypoint must be exactly one of address, placeId and location.latLng.".to_owned()),
        }
    }

    fn address(text: &str) -> Self {
        match coordinates(text) {
            Coordinates::At(point) => Self::Spot(Spot::at(point)),
            _ => Self::Address(GAZETTEER.find(text, &Within::default())),
        }
    }

    /// Where it is.
    pub fn spot(self) -> Option<Spot> {
        match self {
            Self::Spot(spot) => Some(spot),
            Self::Address(found) => found.map(|found| Spot { at: found.place.at, land: Some(found.place.country.land) }),
        }
    }

    /// How an address was understood. `index` tells which intermediate it was.
    pub fn geocoding(self, index: Option<usize>) -> Option<Value> {
        let Self::Address(found) = self else { return None };
        let mut result = match found {
            None => json!({"geocoderStatus": {"code": 5, "message": "NOT_FOUND"}}),
            Some(found) => json!({"geocoderStatus": {}, "placeId": found.place.id, "type": types(found.place)}),
        };
        let fields = result.as_object_mut()?;
        if found.is_some_and(|found| found.partial) {
            fields.insert("partialMatch".to_owned(), true.into());
        }
        if let Some(index) = index {
            fields.insert("intermediateWaypointRequestIndex".to_owned(), index.into());
        }
        Some(result)
    }
}

/// A waypoint as it was received, in one line.
pub fn text(given: &Value) -> String {
    let point = given.pointer("/location/latLng");
    let plain = text_at(given, "/address").or_else(|| text_at(given, "/placeId")).map(str::to_owned);
    let number = |point: &Value, name: &str| point.get(name).map(Value::to_string).unwrap_or_default();
    let point = point.map(|point| format!("{},{}", number(point, "latitude"), number(point, "longitude")));
    plain.or(point).unwrap_or_else(|| "(unknown)".to_owned())
}

fn text_at<'a>(given: &'a Value, pointer: &str) -> Option<&'a str> {
    given.pointer(pointer)?.as_str().filter(|text| !text.trim().is_empty())
}
