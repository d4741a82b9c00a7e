//! JSON in which no member is given twice. Which of two would count is a matter of the reader, and so of nobody.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value as Json};

/// Why a text is no such JSON.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Not JSON at all.
    #[error("is not JSON (line {line}, column {column})")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
    },
    /// The member at this pointer (RFC 6901) is given again.
    #[error("is given more than once")]
    Twice(String),
}

/// Parses a whole text.
pub fn parse(text: &[u8]) -> Result<Json, Malformed> {
    let mut twice = Path::default();
    let mut reader = serde_json::Deserializer::from_slice(text);
    let json = Once(&mut twice).deserialize(&mut reader).and_then(|json| reader.end().map(|()| json));
    json.map_err(|error| match twice.pointer() {
        Some(pointer) => Malformed::Twice(pointer),
        None => Malformed::Syntax { line: error.line(), column: error.column() },
    })
}

/// The way to a member that is given twice, from the inside out.
#[derive(Default)]
struct Path(Vec<String>);

impl Path {
    fn pointer(&self) -> Option<String> {
        let step = |pointer: String, name: &String| pointer + "/" + &name.replace('~', "~0").replace('/', "~1");
        (!self.0.is_empty()).then(|| self.0.iter().rev().fold(String::new(), step))
    }

    /// On the way out of an error, if it is one of ours.
    fn through(&mut self, name: String) {
        if !self.0.is_empty() {
            self.0.push(name);
        }
    }
}

/// One value.
struct Once<'a>(&'a mut Path);

impl<'de> DeserializeSeed<'de> for Once<'_> {
    type Value = Json;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<Json, D::Error> {
        reader.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Once<'_> {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(value.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut reader: A) -> Result<Json, A::Error> {
        let mut items = Vec::new();
        loop {
            match reader.next_element_seed(Once(self.0)) {
                Ok(Some(item)) => items.push(item),
                Ok(None) => return Ok(Json::Array(items)),
                Err(error) => {
                    self.0.through(items.len().to_string());
                    return Err(error);
                }
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut reader: A) -> Result<Json, A::Error> {
        let mut members = Map::new();
        while let Some(name) = reader.next_key::<String>()? {
            if members.contains_key(&name) {
                self.0.0.push(name);
                return Err(A::Error::custom("a member is given twice"));
            }
            match reader.next_value_seed(Once(self.0)) {
                Ok(member) => members.insert(name, member),
                Err(error) => {
                    self.0.through(name);
                    return Err(error);
                }
            };
        }
        Ok(Json::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_once_is_as_ever() {
        for text in [
            r#"{"a":[1,-2,2.5,1e400,"x",null,true],"b":{"a":{}}}"#,
            "[]",
            "\"\"",
            "18446744073709551615",
            "0.1",
            "[[[",
            "{,}",
            "1 2",
        ] {
            assert_eq!(parse(text.as_bytes()).ok(), serde_json::from_str(text).ok(), "{text}");
        }
    }

    #[test]
    fn a_member_given_twice_is_named() {
        for (text, pointer) in [
            (r#"{"a":1,"a":1}"#, "/a"),
            (r#"{"a":1,"\u0061":2}"#, "/a"),
            (r#"[0,{"x/y":[{"~":1,"~":2}]}]"#, "/1/x~1y/0/~0"),
            (r#"{"":1,"":1}"#, "/"),
        ] {
            assert_eq!(parse(text.as_bytes()), Err(Malformed::Twice(pointer.into())), "{text}");
        }
        assert_eq!(parse(b"[1,\n x]"), Err(Malformed::Syntax { line: 2, column: 2 }));
    }
}
