//! The rest of a form: every parameter that nothing else claims, sent in the order in which it came.
//!
//! In the key parameters of different names have no order, and those of one name keep theirs. `a[][x]` and `a[][y]` count as one
//! name there: which element a parameter of an unnumbered list belongs to is told by what stands before it.

use super::{Asked, Invalid, Raw, Value, string, wire};
use serde_json::Value as Json;

/// Most parameters.
const MOST: usize = 1000;

type Pair = (String, String);

/// Reads parameters: as they were decoded, as the text of a form, or as JSON pairs.
pub(super) fn read(raw: &Raw<'_>) -> Result<Value, Invalid> {
    let pairs: Vec<Pair> = match raw {
        Raw::Form(pairs) => pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect(),
        Raw::Json(Json::Array(items)) => items.iter().map(pair).collect::<Option<_>>().ok_or_else(wrong)?,
        _ => {
            let pairs = wire::parse_query(raw.string()?).map_err(|_| wrong())?;
            pairs.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned())).collect()
        }
    };
    if pairs.is_empty() {
        return Err(Invalid::new("must not be empty"));
    }
    if pairs.len() > MOST {
        return Err(Invalid::new(format!("must have at most {MOST} parameters")));
    }
    for (name, value) in &pairs {
        string::clean(name)?;
        string::clean(value)?;
        if name.is_empty() {
            return Err(Invalid::new("has a parameter without a name"));
        }
    }
    let mut sorted: Vec<&Pair> = pairs.iter().collect();
    sorted.sort_by_key(|(name, _)| stem(name));
    let key = encoded(sorted);
    Ok(Value { asked: Asked::Form(pairs), key })
}

fn pair(json: &Json) -> Option<Pair> {
    match json.as_array()?.as_slice() {
        [Json::String(name), Json::String(value)] => Some((name.clone(), value.clone())),
        _ => None,
    }
}

fn wrong() -> Invalid {
    Invalid::new("must be parameters of a form")
}

/// What its order counts within.
fn stem(name: &str) -> &str {
    name.split_once("[]").map_or(name, |(stem, _)| stem)
}

/// `name=value&..`, each encoded on its own.
pub(super) fn encoded<'a>(pairs: impl IntoIterator<Item = &'a Pair>) -> String {
    let mut out = String::new();
    for (name, value) in pairs {
        wire::encode_pair(name, value, &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(text: &str) -> Value {
        read(&Raw::Text(text)).unwrap()
    }

    #[test]
    fn what_is_sent_keeps_its_order_and_the_key_has_none() {
        let (one, other) = (rest("metadata[order]=1&expand[0]=b&a=+x%26"), rest("a=%20x%26&metadata%5Border%5D=1&expand[0]=b"));
        assert_eq!(one.key, other.key);
        assert_eq!(one.asked.text(), "metadata%5Border%5D=1&expand%5B0%5D=b&a=%20x%26");
        assert_ne!(one.asked, other.asked);
    }

    #[test]
    fn what_is_said_twice_counts_twice_and_in_its_order() {
        let key = |text| rest(text).key;
        assert_ne!(key("a=1&a=2"), key("a=2&a=1"));
        assert_ne!(key("a=1&a=1"), key("a=1"));
        assert_eq!(key("a=1&b=3&a=2"), key("b=3&a=1&a=2"));
        assert_ne!(key("i[][p]=1&i[][q]=2&i[][p]=3"), key("i[][p]=1&i[][p]=3&i[][q]=2"));
        assert_ne!(key("a=1%262"), key("a=1&2"));
        assert_ne!(key("a="), key("a=1"));
    }

    #[test]
    fn what_is_no_form_is_refused() {
        for text in ["", "&", "=1", "a=%0", "a=%00", "%01=a", "a=%FF"] {
            assert!(read(&Raw::Text(text)).is_err(), "{text:?}");
        }
        assert!(read(&Raw::Text(&"a=1&".repeat(MOST))).is_ok() && read(&Raw::Text(&"a=1&".repeat(MOST + 1))).is_err());
        assert!(read(&Raw::Json(&serde_json::json!({ "a": "1" }))).is_err());
        assert!(read(&Raw::Many(vec!["a=1", "b=2"])).is_err());
    }
}
