//! Coordinates.

use serde_json::{Value, json};

const EARTH_RADIUS_METERS: f64 = 6_371_008.8;

/// A point on the globe, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Latitude, -90 to 90.
    pub lat: f64,
    /// Longitude, -180 to 180.
    pub lng: f64,
}

impl Point {
    /// A point, if these are numbers on the globe.
    pub fn new(lat: f64, lng: f64) -> Option<Self> {
        (lat.abs() <= 90.0 && lng.abs() <= 180.0).then_some(Self { lat, lng })
    }

    /// Great-circle distance.
    pub fn meters_to(self, other: Self) -> f64 {
        let [lat, other_lat] = [self.lat, other.lat].map(f64::to_radians);
        let [half_lat, half_lng] = [other.lat - self.lat, other.lng - self.lng].map(|d| (d.to_radians() / 2.0).sin());
        let h = half_lat.powi(2) + lat.cos() * other_lat.cos() * half_lng.powi(2);
        2.0 * EARTH_RADIUS_METERS * h.sqrt().min(1.0).asin()
    }

    /// `{"lat": .., "lng": ..}`.
    pub fn json(self) -> Value {
        json!({"lat": self.lat, "lng": self.lng})
    }

    /// A box around the point, as Google and OpenCage write it.
    pub fn bounds(self, degrees: f64) -> Value {
        let (low, high) = self.corners(degrees);
        json!({"northeast": high.json(), "southwest": low.json()})
    }

    /// The two corners of a box around the point: south-west and north-east.
    pub fn corners(self, degrees: f64) -> (Self, Self) {
        let at = |by: f64| Self { lat: (self.lat + by).clamp(-90.0, 90.0), lng: (self.lng + by).clamp(-180.0, 180.0) };
        (at(-degrees).rounded(), at(degrees).rounded())
    }

    fn rounded(self) -> Self {
        let round = |degrees: f64| (degrees * 1e4).round() / 1e4;
        Self { lat: round(self.lat), lng: round(self.lng) }
    }
}

/// What a text in the form `lat,lng` (or `lat lng`) says.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coordinates {
    /// It is not of that form.
    NotThese,
    /// Two numbers, but not on the globe.
    OffTheGlobe,
    /// A point.
    At(Point),
}

/// Reads `52.52,13.405`.
pub fn coordinates(text: &str) -> Coordinates {
    let parts: Vec<&str> = text.split([',', ' ', ';']).filter(|part| !part.is_empty()).collect();
    let [lat, lng] = parts.as_slice() else { return Coordinates::NotThese };
    match (number(lat), number(lng)) {
        (Some(lat), Some(lng)) => Point::new(lat, lng).map_or(Coordinates::OffTheGlobe, Coordinates::At),
        _ => Coordinates::NotThese,
    }
}

/// A plain decimal number: not `inf`, not `nan`, not `1e3`.
fn number(text: &str) -> Option<f64> {
    text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'.' | b'-' | b'+')).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_of_the_globe() {
        let (delhi, jaipur) = (Point { lat: 28.6139, lng: 77.2090 }, Point { lat: 26.9124, lng: 75.7873 });
        assert!((delhi.meters_to(jaipur) - 235_600.0).abs() < 2_000.0, "{}", delhi.meters_to(jaipur));
        assert!(delhi.meters_to(delhi) < 0.001);
    }

    #[test]
    fn coordinates_are_two_numbers_on_the_globe() {
        assert_eq!(coordinates(" 52.52, -13.4 "), Coordinates::At(Point { lat: 52.52, lng: -13.4 }));
        assert_eq!(coordinates("91,0"), Coordinates::OffTheGlobe);
        for text in ["Berlin", "52.52", "1,2,3", "nan,1", ""] {
            assert_eq!(coordinates(text), Coordinates::NotThese, "{text}");
        }
    }
}
