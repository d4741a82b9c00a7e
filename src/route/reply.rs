//! A reply shape of one's own: JSONPath (RFC 9535) into the provider's answer, applied on the way out.

use serde_json::{Map, Value as Json};
use serde_json_path::JsonPath;

use crate::config::section::Section;

/// `[routes.x.reply]`.
#[derive(Clone, Debug)]
pub(crate) struct Reply(Vec<(String, JsonPath)>);

impl Reply {
    pub(crate) fn read(section: &Section<'_>) -> Self {
        let mut members = Vec::new();
        for (name, text) in section.map::<String>() {
            match JsonPath::parse(&text) {
                Ok(path) => members.push((name, path)),
                Err(error) => section.fault(
                    &name,
                    format!("{text:?} is not JSONPath: {error}"),
                    "write a path such as \"$.routes[0].distanceMeters\" (RFC 9535)",
                ),
            }
        }
        Self(members)
    }

    /// The shaped body: a path that finds one node gives its value, several a list, none `null`.
    pub(crate) fn shape(&self, body: &[u8]) -> Option<String> {
        let json: Json = serde_json::from_slice(body).ok()?;
        let shaped: Map<String, Json> = self.0.iter().map(|(name, path)| (name.clone(), find(path, &json))).collect();
        Some(Json::Object(shaped).to_string())
    }
}

fn find(path: &JsonPath, json: &Json) -> Json {
    match path.query(json).all().as_slice() {
        [] => Json::Null,
        [one] => (*one).clone(),
        several => several.iter().map(|node| (*node).clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_node_several_none() {
        let path = |text| JsonPath::parse(text).unwrap();
        let reply = Reply(vec![("d".into(), path("$.r[0].d")), ("all".into(), path("$.r[*].d")), ("no".into(), path("$.x"))]);
        assert_eq!(reply.shape(br#"{"r":[{"d":1},{"d":2}]}"#).unwrap(), r#"{"all":[1,2],"d":1,"no":null}"#);
        assert_eq!(reply.shape(b"<html>"), None);
    }
}
