//! Sets and lists of values of one kind.

use std::fmt::Write as _;

use serde_json::Value as Json;

use super::{Asked, Invalid, Kind, Raw, Value};

/// Most elements.
const MAX_ITEMS: usize = 1000;

/// Reads elements whose order and repetition mean nothing: sorted by key, each once.
pub fn set(raw: &Raw<'_>, of: &Kind, separator: Option<char>) -> Result<Value, Invalid> {
    let mut items = items(raw, of, separator)?;
    items.sort_by(|a, b| a.key.cmp(&b.key));
    items.dedup_by(|a, b| a.key == b.key);
    Ok(value(items, separator))
}

/// Reads elements whose order matters.
pub fn list(raw: &Raw<'_>, of: &Kind, separator: Option<char>) -> Result<Value, Invalid> {
    Ok(value(items(raw, of, separator)?, separator))
}

/// Elements of a JSON array as they are; those of a text, of each repetition of a parameter and of a JSON string split at the
/// separator.
fn items(raw: &Raw<'_>, of: &Kind, separator: Option<char>) -> Result<Vec<Value>, Invalid> {
    let raws: Vec<Raw<'_>> = match raw {
        Raw::Json(Json::Array(items)) => items.iter().take(MAX_ITEMS + 1).map(Raw::Json).collect(),
        Raw::Many(many) => many.iter().flat_map(|text| split(text, separator)).take(MAX_ITEMS + 1).collect(),
        _ => split(raw.string()?, separator).take(MAX_ITEMS + 1).collect(),
    };
    if raws.len() > MAX_ITEMS {
        return Err(Invalid::new(format!("must have at most {MAX_ITEMS} elements")));
    }
    if raws.is_empty() && !matches!(raw, Raw::Json(Json::Array(_))) {
        return Err(Invalid::new("must not be empty"));
    }
    raws.into_iter().map(|raw| of.read(raw).map_err(|why| Invalid::new(format!("has an element that {}", why.reason)))).collect()
}

/// Blank pieces are not elements: `a,,b,` is `a,b`. Without a separator a text is one element, whatever it holds.
fn split(text: &str, separator: Option<char>) -> impl Iterator<Item = Raw<'_>> {
    let pieces = text.split(move |c| Some(c) == separator);
    pieces.filter(move |piece| separator.is_none() || !piece.trim().is_empty()).map(Raw::Text)
}

/// Keys are length-prefixed, since an element may hold anything.
fn value(items: Vec<Value>, separator: Option<char>) -> Value {
    let mut key = String::new();
    for item in &items {
        let _ = write!(key, "{}:{},", item.key.len(), item.key);
    }
    Value { asked: Asked::List { items: items.into_iter().map(|item| item.asked).collect(), separator }, key }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn avoid() -> Kind {
        let values = ["tolls", "ferries", "highways"].map(String::from).into();
        let of = Box::new(Kind::Enum { values, aliases: [("1".into(), "tolls".into())].into() });
        Kind::Set { of, separator: Some(',') }
    }

    #[test]
    fn n_05_a_set_has_no_order() {
        let right = avoid().read(Raw::Text("tolls,ferries")).unwrap();
        for raw in ["ferries,tolls", "tolls,tolls,ferries", " TOLLS , Ferries ", ",ferries,,1,"] {
            assert_eq!(avoid().read(Raw::Text(raw)).as_ref(), Ok(&right), "{raw}");
        }
        assert_eq!(avoid().read(Raw::Many(vec!["tolls", "ferries"])).as_ref(), Ok(&right));
        assert_eq!(avoid().read(Raw::Many(vec!["ferries,tolls", "tolls"])).as_ref(), Ok(&right));
        assert_eq!(avoid().read(Raw::Json(&json!([1, "ferries"]))).as_ref(), Ok(&right));
        assert_eq!((right.asked.text().into_owned(), right.asked.json()), ("ferries,tolls".into(), json!(["ferries", "tolls"])));
    }

    #[test]
    fn n_05_a_list_keeps_its_order() {
        let via = Kind::List { of: Box::new(Kind::Text { min: 1, max: 50 }), separator: Some('|') };
        let key = |raw| via.read(Raw::Text(raw)).unwrap().key;
        assert_ne!(key("X|Y"), key("Y|X"));
        assert_ne!(key("X|X"), key("X"));
        assert_eq!(key("x | y"), key("X|Y"));
        assert_eq!(via.read(Raw::Many(vec!["X", "Y"])).unwrap().key, key("X|Y"));
        assert_eq!(via.read(Raw::Text("B|A")).unwrap().asked.text(), "B|A");
    }

    #[test]
    fn without_a_separator_a_text_is_one_element() {
        let urls = Kind::List { of: Box::new(Kind::String { min: 1, max: 50 }), separator: None };
        let read = |raw| urls.read(raw).unwrap();
        assert_eq!(read(Raw::Text("http://a/?x=1,2")).asked.json(), json!(["http://a/?x=1,2"]));
        assert_eq!(read(Raw::Many(vec!["a,b", " c "])).asked.json(), json!(["a,b", " c "]));
        assert_ne!(read(Raw::Many(vec!["a", "b"])).key, read(Raw::Text("a,b")).key);
    }

    #[test]
    fn elements_never_run_together() {
        let texts = Kind::List { of: Box::new(Kind::Text { min: 1, max: 50 }), separator: Some(',') };
        let bodies = [json!(["a,b"]), json!(["a", "b"]), json!(["a,1:b"]), json!(["1:a"]), json!(["a"]), json!([])];
        let keys: std::collections::BTreeSet<_> = bodies.iter().map(|b| texts.read(Raw::Json(b)).unwrap().key).collect();
        assert_eq!(keys.len(), bodies.len());
    }

    #[test]
    fn what_is_no_set_is_refused() {
        for raw in ["", ",", " , ", "tolls,rivers"] {
            assert!(avoid().read(Raw::Text(raw)).is_err(), "{raw}");
        }
        assert!(avoid().read(Raw::Many(vec![])).is_err());
        assert!(avoid().read(Raw::Json(&json!({"a": 1}))).is_err());
        assert!(avoid().read(Raw::Json(&json!(["tolls", null]))).is_err());
        assert!(avoid().read(Raw::Text(&"tolls,".repeat(1001))).is_err());
        assert!(avoid().read(Raw::Text(&"tolls,".repeat(1000))).is_ok());
    }
}
