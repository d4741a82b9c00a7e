//! Google field masks.

use std::borrow::Cow;

use serde_json::Value as Json;

use super::{Invalid, Raw, Value, text};

/// Reads a mask: paths in lowerCamelCase, sorted, without those that another one covers. `*` covers all.
pub fn read(raw: &Raw<'_>) -> Result<Value, Invalid> {
    let mut paths = Vec::new();
    for part in parts(raw)? {
        for item in text::typed(part)?.split(',') {
            paths.push(path(item.trim())?);
        }
    }
    paths.sort_unstable();
    let mut kept: Vec<String> = Vec::with_capacity(paths.len());
    for path in paths {
        if !kept.last().is_some_and(|last| covers(last, &path)) {
            kept.push(path);
        }
    }
    if kept.is_empty() { Err(wrong()) } else { Ok(Value::plain(kept.join(","))) }
}

fn parts<'a>(raw: &Raw<'a>) -> Result<Vec<&'a str>, Invalid> {
    match raw {
        Raw::Many(many) => Ok(many.clone()),
        Raw::Json(Json::Array(items)) => items.iter().map(|item| Raw::Json(item).string()).collect(),
        _ => Ok(vec![raw.string()?]),
    }
}

/// `routes` covers `routes` and `routes.duration`.
fn covers(wide: &str, path: &str) -> bool {
    wide == "*" || path.strip_prefix(wide).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn path(item: &str) -> Result<String, Invalid> {
    let segments: Result<Vec<_>, _> = item.split('.').map(segment).collect();
    Ok(segments?.join("."))
}

/// `distance_meters` as `distanceMeters`.
fn segment(name: &str) -> Result<Cow<'_, str>, Invalid> {
    if name == "*" {
        return Ok(Cow::Borrowed(name));
    }
    let starts = name.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    if !starts || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return Err(wrong());
    }
    if !name.contains('_') {
        return Ok(Cow::Borrowed(name));
    }
    let mut words = name.split('_');
    let mut out = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        out.extend(letters.next().map(|c| c.to_ascii_uppercase()));
        out.push_str(letters.as_str());
    }
    Ok(Cow::Owned(out))
}

fn wrong() -> Invalid {
    Invalid::new("must be a field mask such as routes.duration,routes.distanceMeters")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn mask(raw: &str) -> Option<String> {
        read(&Raw::Text(raw)).ok().map(|v| v.key)
    }

    #[test]
    fn n_06_a_mask_has_one_spelling() {
        let right = Value::plain("routes.distanceMeters,routes.duration".into());
        for raw in ["routes.duration,routes.distanceMeters", " routes.distance_meters , routes.duration,routes.duration"] {
            assert_eq!(read(&Raw::Text(raw)).as_ref(), Ok(&right), "{raw}");
        }
        assert_eq!(read(&Raw::Many(vec!["routes.duration", "routes.distanceMeters"])).as_ref(), Ok(&right));
        assert_eq!(read(&Raw::Json(&json!(["routes.duration", "routes.distance_meters"]))).as_ref(), Ok(&right));
    }

    #[test]
    fn a_wider_path_covers_a_narrower_one() {
        let table = [
            ("routes,routes.duration", "routes"),
            ("routes.legs.steps,routes.legs", "routes.legs"),
            ("*,routes", "*"),
            ("route,routes.duration", "route,routes.duration"),
            ("a.b,a.bc", "a.b,a.bc"),
            ("a.*.b", "a.*.b"),
            ("address_line_1", "addressLine1"),
        ];
        for (raw, right) in table {
            assert_eq!(mask(raw).as_deref(), Some(right), "{raw}");
        }
    }

    #[test]
    fn what_is_no_mask_is_refused() {
        for raw in ["", ",", "a,", "a..b", ".a", "a b", "a-b", "_a", "1a", "a.**", "ä"] {
            assert_eq!(mask(raw), None, "{raw}");
        }
        assert!(read(&Raw::Many(vec![])).is_err());
        assert!(read(&Raw::Json(&json!([1]))).is_err());
    }
}
