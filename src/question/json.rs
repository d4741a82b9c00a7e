//! JSON taken whole, and its canonical form.

use serde_json::Value as Json;

use super::{Asked, Decimal, Invalid, Raw, Value};

mod once;

pub use once::{Malformed, parse};

/// Deepest nesting of arrays and objects.
const MAX_DEPTH: usize = 64;

/// Reads any JSON. It is sent as it was given; the key has its members sorted and one spelling of every number.
pub fn read(raw: &Raw<'_>) -> Result<Value, Invalid> {
    if let Raw::Json(json) = raw {
        // The depth is checked before anything else walks it.
        let key = canonical(json)?;
        return Ok(Value { asked: Asked::Json((*json).clone()), key });
    }
    let json = parse(raw.string()?.as_bytes()).map_err(|_| Invalid::new("must be JSON in which no member is given twice"))?;
    let key = canonical(&json)?;
    Ok(Value { asked: Asked::Json(json), key })
}

/// One text for one value: members sorted by name, `10`, `10.0` and `1e1` alike, strings untouched.
pub fn canonical(json: &Json) -> Result<String, Invalid> {
    let mut out = String::new();
    write(json, 0, &mut out)?;
    Ok(out)
}

fn write(json: &Json, depth: usize, out: &mut String) -> Result<(), Invalid> {
    match json {
        Json::Number(number) => {
            let number: Decimal = number.to_string().parse()?;
            out.push_str(&number.scientific());
        }
        Json::Array(items) => {
            let depth = deeper(depth)?;
            list('[', items, ']', out, |item, out| write(item, depth, out))?;
        }
        Json::Object(members) => {
            let depth = deeper(depth)?;
            let mut members: Vec<_> = members.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            list('{', members, '}', out, |(name, member), out| {
                string(name, out);
                out.push(':');
                write(member, depth, out)
            })?;
        }
        Json::String(text) => string(text, out),
        Json::Null | Json::Bool(_) => out.push_str(&json.to_string()),
    }
    Ok(())
}

fn deeper(depth: usize) -> Result<usize, Invalid> {
    if depth >= MAX_DEPTH { Err(Invalid::new("is nested too deeply")) } else { Ok(depth.saturating_add(1)) }
}

fn list<T>(
    open: char,
    items: impl IntoIterator<Item = T>,
    close: char,
    out: &mut String,
    mut each: impl FnMut(T, &mut String) -> Result<(), Invalid>,
) -> Result<(), Invalid> {
    out.push(open);
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        each(item, out)?;
    }
    out.push(close);
    Ok(())
}

fn string(text: &str, out: &mut String) {
    out.push_str(&Json::from(text).to_string());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Option<String> {
        read(&Raw::Text(text)).ok().map(|v| v.key)
    }

    #[test]
    fn spellings_of_a_value_are_one() {
        let table: [&[&str]; 5] = [
            &["10", "10.0", "1e1", "1E+1", " 10 "],
            &["0", "-0", "0.0", "-0.0", "0e5"],
            &[r#"{"a":1,"b":[true,null]}"#, r#"{ "b" : [true, null], "a" : 1.0 }"#],
            &[r#""a""#, r#""\u0061""#],
            &["[0.1]", "[1e-1]"],
        ];
        for group in table {
            let keys: std::collections::BTreeSet<_> = group.iter().map(|text| key(text).unwrap()).collect();
            assert_eq!(keys.len(), 1, "{group:?}");
        }
    }

    #[test]
    fn other_values_stay_other() {
        let all = [
            "[]",
            "{}",
            "null",
            "\"\"",
            "\"null\"",
            "0",
            "\"0\"",
            "false",
            "[[]]",
            "[1,2]",
            "[2,1]",
            "[12]",
            "12",
            "1.2",
            "-12",
            "120",
            "\"é\"",
            "\"e\u{301}\"",
            "\"A\"",
            "\"a\"",
            r#"{"a":1}"#,
            r#"{"a":"1"}"#,
            r#"[{"a":1}]"#,
        ];
        let keys: std::collections::BTreeSet<_> = all.iter().map(|text| key(text).unwrap()).collect();
        assert_eq!(keys.len(), all.len());
    }

    #[test]
    fn it_is_sent_as_it_was_given() {
        let given = serde_json::json!({"b": 10.5, "a": [" x "]});
        assert_eq!(read(&Raw::Json(&given)).unwrap().asked.json(), given);
    }

    #[test]
    fn f_02_deep_nesting_and_huge_numbers_are_refused() {
        let nested = |depth| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(key(&nested(64)).is_some());
        for text in [nested(65), nested(5000), "[".repeat(5000), "1e400".into(), "nul".into(), String::new()] {
            assert_eq!(key(&text), None);
        }
        let mut deep = Json::Null;
        for _ in 0..5000 {
            deep = Json::Array(vec![deep]);
        }
        assert!(read(&Raw::Json(&deep)).is_err());
    }
}
