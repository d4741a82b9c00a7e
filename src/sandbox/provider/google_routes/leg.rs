//! Distances, times and the shape of a route.

use serde_json::{Value, json};

use super::Wrong;
use super::polyline;
use super::waypoint::Spot;
use crate::sandbox::gazetteer::point::Point;

/// Roads are so much longer than the great circle.
const DETOUR: f64 = 1.3;

/// How one travels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// By car.
    Drive,
    /// By bicycle.
    Bicycle,
    /// On foot.
    Walk,
    /// By motor scooter.
    TwoWheeler,
    /// By public transport.
    Transit,
}

impl Mode {
    /// Reads the enum by name or by number; absent is `DRIVE`.
    pub fn read(given: Option<&Value>) -> Result<Self, Wrong> {
        let number = given.and_then(Value::as_u64).map(|number| number.to_string());
        match number.as_deref().or_else(|| given.and_then(Value::as_str)) {
            None if given.is_none_or(Value::is_null) => Ok(Self::Drive),
            Some("0" | "1" | "TRAVEL_MODE_UNSPECIFIED" | "DRIVE") => Ok(Self::Drive),
            Some("2" | "BICYCLE") => Ok(Self::Bicycle),
            Some("3" | "WALK") => Ok(Self::Walk),
            Some("4" | "TWO_WHEELER") => Ok(Self::TwoWheeler),
            Some("7" | "TRANSIT") => Ok(Self::Transit),
            _ => Err(format!("Invalid value at 'travel_mode': {}", given.unwrap_or(&Value::Null))),
        }
    }

    /// Its enum name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Drive => "DRIVE",
            Self::Bicycle => "BICYCLE",
            Self::Walk => "WALK",
            Self::TwoWheeler => "TWO_WHEELER",
            Self::Transit => "TRANSIT",
        }
    }

    fn meters_per_second(self) -> f64 {
        match self {
            Self::Drive => 18.0,
            Self::Bicycle => 4.5,
            Self::Walk => 1.4,
            Self::TwoWheeler => 14.0,
            Self::Transit => 16.0,
        }
    }
}

/// A routing preference is for modes with a motor only.
pub fn check_preference(given: Option<&Value>, mode: Mode) -> Result<(), Wrong> {
    let number = given.and_then(Value::as_u64).map(|number| number.to_string());
    let chosen = match number.as_deref().or_else(|| given.and_then(Value::as_str)) {
        None if given.is_none_or(Value::is_null) => false,
        Some("0" | "ROUTING_PREFERENCE_UNSPECIFIED") => false,
        Some("1" | "TRAFFIC_UNAWARE" | "2" | "TRAFFIC_AWARE" | "3" | "TRAFFIC_AWARE_OPTIMAL") => true,
        _ => return Err(format!("Invalid value at 'routing_preference': {}", given.unwrap_or(&Value::Null))),
    };
    match mode {
        Mode::Bicycle | Mode::Walk | Mode::Transit if chosen => {
            Err("Routing preference cannot be set for this travel mode.".to_owned())
        }
        _ => Ok(()),
    }
}

/// A route through all points, unless water lies between them.
pub fn route(stops: &[Spot], mode: Mode, number_enums: bool) -> Option<Value> {
    let apart = stops.windows(2).any(|pair| matches!(pair, [a, b] if a.land != b.land && a.land.is_some() && b.land.is_some()));
    if apart {
        return None;
    }
    let points: Vec<Point> = stops.iter().map(|stop| stop.at).collect();
    let pairs: Vec<[Point; 2]> = points.windows(2).filter_map(|pair| pair.try_into().ok()).collect();
    let lengths: Vec<f64> = pairs.iter().map(|[from, to]| (from.meters_to(*to) * DETOUR).round()).collect();
    let legs: Vec<Value> = pairs.iter().zip(&lengths).map(|(pair, meters)| leg(*pair, *meters, mode)).collect();
    let mut route = measures(lengths.iter().sum(), mode);
    let label = if number_enums { json!(1) } else { json!("DEFAULT_ROUTE") };
    let extra = json!({
        "description": "Sandbox Road",
        "legs": legs,
        "polyline": {"encodedPolyline": polyline::encoded(&points)},
        "routeLabels": [label],
        "viewport": viewport(&points),
    });
    merge(&mut route, extra);
    Some(route)
}

fn leg([from, to]: [Point; 2], meters: f64, mode: Mode) -> Value {
    let mut leg = measures(meters, mode);
    let extra = json!({
        "endLocation": {"latLng": lat_lng(to)},
        "polyline": {"encodedPolyline": polyline::encoded(&[from, to])},
        "startLocation": {"latLng": lat_lng(from)},
    });
    merge(&mut leg, extra);
    leg
}

fn measures(meters: f64, mode: Mode) -> Value {
    let seconds = (meters / mode.meters_per_second()).round();
    let duration = format!("{seconds:.0}s");
    json!({
        "distanceMeters": whole(meters),
        "duration": duration,
        "localizedValues": {
            "distance": {"text": format!("{:.0} km", meters / 1000.0)},
            "duration": {"text": format!("{:.0} mins", seconds / 60.0)},
        },
        "staticDuration": duration,
    })
}

/// A whole number as JSON writes whole numbers.
fn whole(meters: f64) -> Value {
    serde_json::from_str(&format!("{meters:.0}")).unwrap_or_default()
}

fn lat_lng(point: Point) -> Value {
    json!({"latitude": point.lat, "longitude": point.lng})
}

fn viewport(points: &[Point]) -> Value {
    let least = |of: fn(&Point) -> f64| points.iter().map(of).fold(f64::INFINITY, f64::min);
    let most = |of: fn(&Point) -> f64| points.iter().map(of).fold(f64::NEG_INFINITY, f64::max);
    json!({
        "high": lat_lng(Point { lat: most(|point| point.lat), lng: most(|point| point.lng) }),
        "low": lat_lng(Point { lat: least(|point| point.lat), lng: least(|point| point.lng) }),
    })
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}
