//! Coordinates: latitude first, then longitude.

use serde_json::{Map, Value as Json};

use super::{Decimal, Invalid, Raw, Value, scalar};

/// A point on earth with its coordinates rounded and written plain.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    lat: (Decimal, String),
    lng: (Decimal, String),
}

impl Point {
    /// Latitude within ±90, longitude within ±180. The meridian of -180 is that of 180.
    pub fn new(lat: &str, lng: &str, places: u32) -> Result<Self, Invalid> {
        let mut point = Self { lat: within(lat, 90, places, "latitude")?, lng: within(lng, 180, places, "longitude")? };
        if point.lng.1 == "-180" {
            point.lng = (Decimal::from(180), "180".to_owned());
        }
        Ok(point)
    }

    /// `lat,lng`.
    pub fn text(&self) -> String {
        [&self.lat.1, ",", &self.lng.1].concat()
    }

    /// As Google's `LatLng` message.
    pub fn json(&self) -> Json {
        let members = [("latitude", &self.lat.0), ("longitude", &self.lng.0)];
        Json::Object(members.into_iter().map(|(name, of)| (name.to_owned(), scalar::json_number(of))).collect())
    }
}

fn within(raw: &str, bound: i64, places: u32, name: &str) -> Result<(Decimal, String), Invalid> {
    let (min, max) = (Decimal::from(bound.saturating_neg()), Decimal::from(bound));
    scalar::rounded(raw, Some(&min), Some(&max), places).map_err(|why| Invalid::new(format!("{name} {}", why.reason)))
}

/// Reads `lat,lng`, two fields, `[lat, lng]` or an object of both. `GeoJSON` writes them the other way round and is not read.
pub fn read(raw: &Raw<'_>, places: u32) -> Result<Value, Invalid> {
    let point = point(raw, places)?;
    Ok(Value::typed(point.text(), point.json()))
}

fn point(raw: &Raw<'_>, places: u32) -> Result<Point, Invalid> {
    match raw {
        Raw::Pair(lat, lng) => Point::new(lat, lng, places),
        Raw::Json(Json::Object(members)) => from_object(members, places),
        Raw::Json(Json::Array(pair)) => match pair.as_slice() {
            [lat, lng] => from_json(lat, lng, places),
            _ => Err(Invalid::new("must have a latitude and a longitude")),
        },
        _ => from_text(raw.string()?, places),
    }
}

fn from_text(text: &str, places: u32) -> Result<Point, Invalid> {
    let (lat, lng) = text.split_once([',', '，']).ok_or_else(|| Invalid::new("must be latitude,longitude"))?;
    Point::new(lat, lng, places)
}

/// Reads `{"latitude", "longitude"}` or `{"lat", "lng"}`, and nothing besides.
pub fn from_object(members: &Map<String, Json>, places: u32) -> Result<Point, Invalid> {
    let of = |names: &[&str]| names.iter().find_map(|name| members.get(*name));
    match (of(&["latitude", "lat"]), of(&["longitude", "lng"])) {
        (Some(lat), Some(lng)) if members.len() == 2 => from_json(lat, lng, places),
        _ => Err(Invalid::new("must have a latitude and a longitude and nothing else")),
    }
}

fn from_json(lat: &Json, lng: &Json, places: u32) -> Result<Point, Invalid> {
    Point::new(&Raw::Json(lat).string_or_number()?, &Raw::Json(lng).string_or_number()?, places)
}

/// The two halves, if the text is nothing but two numbers with a comma between.
pub fn numbers(text: &str) -> Option<(&str, &str)> {
    let (lat, lng) = text.split_once(',').map(|(lat, lng)| (lat.trim(), lng.trim()))?;
    let number = |half: &str| half.parse::<Decimal>().is_ok();
    (number(lat) && number(lng)).then_some((lat, lng))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn text(raw: &str) -> Option<String> {
        read(&Raw::Text(raw), 5).ok().map(|v| v.key)
    }

    #[test]
    fn a_point_has_one_spelling() {
        let right = Value::typed("45.5,-73.9".into(), json!({"latitude": 45.5, "longitude": -73.9}));
        for raw in ["45.5,-73.9", "+45.50 , -73.900000", "4.55e1,-0739e-1", "45.500004,-73.899996", "４５.５，\u{2212}７３.９"]
        {
            assert_eq!(read(&Raw::Text(raw), 5).as_ref(), Ok(&right), "{raw}");
        }
        assert_eq!(read(&Raw::Pair("45.5", "-73.9"), 5).as_ref(), Ok(&right));
        let bodies = [
            json!({"latitude": 45.5, "longitude": -73.9}),
            json!({"lng": "-73.9", "lat": 45.50}),
            json!([45.5, -73.9]),
            json!("45.5,-73.9"),
        ];
        for body in &bodies {
            assert_eq!(read(&Raw::Json(body), 5).as_ref(), Ok(&right), "{body}");
        }
    }

    #[test]
    fn n_04_the_sign_stays_in_the_key() {
        let keys: std::collections::BTreeSet<_> =
            ["-45.5,-73.9", "45.5,73.9", "-45.5,73.9", "45.5,-73.9", "73.9,45.5", "45.5,7.39", "4.55,73.9"]
                .map(|raw| text(raw).unwrap())
                .into();
        assert_eq!(keys.len(), 7);
    }

    #[test]
    fn zero_has_no_sign_and_the_date_line_no_side() {
        assert_eq!(text("-0,-0.000001").as_deref(), Some("0,0"));
        assert_eq!(text("10,-180").as_deref(), Some("10,180"));
        assert_eq!(text("10,-179.999999").as_deref(), Some("10,180"));
        assert_eq!(text("-90,180").as_deref(), Some("-90,180"));
    }

    #[test]
    fn what_is_no_point_is_refused() {
        for raw in
            ["", "45", "45,", ",1", "90.000001,0", "-91,0", "0,180.00000001", "0,1e400", "NaN,1", "1,2,3", "45°N,73°W", "4²,1"]
        {
            assert_eq!(text(raw), None, "{raw}");
        }
        let bodies = [
            json!([1]),
            json!([1, 2, 3]),
            json!({"lat": 1}),
            json!({"lat": 1, "lng": 2, "alt": 3}),
            json!({"lat": 1, "latitude": 1}),
            json!([1, null]),
            json!(5),
        ];
        for body in &bodies {
            assert!(read(&Raw::Json(body), 5).is_err(), "{body}");
        }
    }
}
