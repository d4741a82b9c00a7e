//! Field masks: which fields of the answer come back.

use serde_json::{Map, Value};

use super::Wrong;

/// Fields that can be asked for, two levels deep; below that anything goes.
const KNOWN: [(&str, &[&str]); 3] = [
    (
        "routes",
        &[
            "description",
            "distanceMeters",
            "duration",
            "legs",
            "localizedValues",
            "optimizedIntermediateWaypointIndex",
            "polyline",
            "polylineDetails",
            "routeLabels",
            "routeToken",
            "staticDuration",
            "travelAdvisory",
            "viewport",
            "warnings",
        ],
    ),
    ("geocodingResults", &["origin", "destination", "intermediates"]),
    ("fallbackInfo", &["reason", "routingMode"]),
];

/// Paths of fields, in camel case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask(Vec<Vec<String>>);

impl Mask {
    /// Reads `routes.duration,routes.distance_meters` or `*`.
    pub fn read(given: &str) -> Result<Self, Wrong> {
        let paths = given.split(',').map(str::trim).filter(|path| !path.is_empty());
        let paths: Vec<Vec<String>> = paths.map(|path| path.split('.').map(camel).collect()).collect();
        match paths.iter().find(|path| !is_known(path)) {
            Some(path) => {
                Err(format!("Error expanding 'fields' parameter. Cannot find matching fields for path '{}'.", path.join(".")))
            }
            None => Ok(Self(paths)),
        }
    }

    /// The answer with these fields only.
    pub fn apply(&self, answer: &Value) -> Value {
        let paths: Vec<&[String]> = self.0.iter().map(Vec::as_slice).collect();
        kept(answer, &paths)
    }
}

fn is_known(path: &[String]) -> bool {
    let names: Vec<&str> = path.iter().map(String::as_str).collect();
    match names.as_slice() {
        ["*"] => true,
        [top] => KNOWN.iter().any(|(known, _)| known == top),
        [top, field, ..] => KNOWN.iter().any(|(known, fields)| known == top && (fields.contains(field) || *field == "*")),
        [] => false,
    }
}

/// What of a value the paths name. A path passes through arrays, and one that ends here takes all.
fn kept(value: &Value, paths: &[&[String]]) -> Value {
    if paths.iter().any(|path| path.is_empty() || matches!(path, [star] if star == "*")) {
        return value.clone();
    }
    match value {
        Value::Array(items) => items.iter().map(|item| kept(item, paths)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.iter().filter_map(|(name, value)| field(name, value, paths)).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

fn field(name: &str, value: &Value, paths: &[&[String]]) -> Option<(String, Value)> {
    let below = |path: &&[String]| match path.split_first() {
        Some((first, rest)) if first == name => Some(rest.to_vec()),
        _ => None,
    };
    let below: Vec<Vec<String>> = paths.iter().filter_map(below).collect();
    let below: Vec<&[String]> = below.iter().map(Vec::as_slice).collect();
    (!below.is_empty()).then(|| (name.to_owned(), kept(value, &below)))
}

/// `distance_meters` is `distanceMeters`.
fn camel(name: &str) -> String {
    let mut parts = name.trim().split('_').filter(|part| !part.is_empty());
    let mut camel = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut chars = part.chars();
        camel.extend(chars.next().map(|first| first.to_ascii_uppercase()));
        camel.push_str(chars.as_str());
    }
    camel
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_named_is_kept() {
        let answer = json!({"routes": [{"duration": "1s", "legs": [{"duration": "1s", "steps": []}]}], "geocodingResults": {}});
        let apply = |mask| Mask::read(mask).unwrap().apply(&answer);
        assert_eq!(apply("*"), answer);
        assert_eq!(apply("routes.duration"), json!({"routes": [{"duration": "1s"}]}));
        assert_eq!(
            apply("routes.legs.duration , geocoding_results"),
            json!({"routes": [{"legs": [{"duration": "1s"}]}], "geocodingResults": {}})
        );
        assert_eq!(apply("routes.*"), json!({"routes": answer["routes"]}));
        assert_eq!(apply("fallbackInfo"), json!({}));
    }

    #[test]
    fn a_field_that_does_not_exist_is_an_error() {
        assert!(Mask::read("routes.colour").unwrap_err().contains("'routes.colour'"));
        assert!(Mask::read("route").is_err());
    }
}
