//! Which values make an answer depend on the moment it was asked (traffic, departure times): such an answer is not kept.

use serde_json::Value as Json;

use super::template::{Template, Values};
use crate::config::node::{Node, Value as NodeValue};
use crate::config::section::Section;

/// A preset's list of volatile values.
#[derive(Clone, Debug, Default)]
pub(crate) struct Volatile(Vec<Mark>);

#[derive(Clone, Debug)]
struct Mark {
    place: MarkPlace,
    /// The values that matter; none: any value.
    values: Option<Vec<String>>,
}

#[derive(Clone, Debug)]
enum MarkPlace {
    Json(String),
    Query(String),
}

impl Volatile {
    /// Reads `volatile`, a list of `{ json = "/pointer" | query = "name", values = [..] }`.
    pub(crate) fn read(section: &Section<'_>, key: &'static str) -> Self {
        const REMEDY: &str = "write volatile = [{ json = \"/departureTime\" }, { query = \"at\", values = [..] }]";
        let Some(node) = section.node(key) else { return Self::default() };
        let NodeValue::Array(items) = &node.value else {
            section.fault(key, format!("is {}, not a list of marks", node.describe()), REMEDY);
            return Self::default();
        };
        let mut marks = Vec::new();
        for item in items {
            let text = |key: &str| item.table().and_then(|table| table.get(key)).and_then(Node::text).map(ToOwned::to_owned);
            let place = text("json").map(MarkPlace::Json).or_else(|| text("query").map(MarkPlace::Query));
            let values = item.table().and_then(|table| table.get("values")).map(|values| match &values.value {
                NodeValue::Array(values) => values.iter().filter_map(Node::text).map(ToOwned::to_owned).collect(),
                _ => Vec::new(),
            });
            match place {
                Some(place) => marks.push(Mark { place, values }),
                None => section.fault(key, "a mark names no place", REMEDY),
            }
        }
        Self(marks)
    }

    /// The first volatile value a request would send, as its place.
    pub(crate) fn found(&self, template: &Template, values: &Values) -> Option<&str> {
        if self.0.is_empty() {
            return None;
        }
        let json = template.body_json(values);
        self.0.iter().find_map(|mark| mark.found(template, values, json.as_ref()))
    }
}

impl Mark {
    fn found(&self, template: &Template, values: &Values, json: Option<&Json>) -> Option<&str> {
        let (place, sent) = match &self.place {
            MarkPlace::Json(pointer) => {
                let found = json.and_then(|json| json.pointer(pointer));
                (pointer, found.map(|found| found.as_str().map_or_else(|| found.to_string(), ToOwned::to_owned)))
            }
            MarkPlace::Query(name) => (name, template.query_value(name, values)),
        };
        let sent = sent?;
        let counts = self.values.as_ref().is_none_or(|values| values.contains(&sent));
        counts.then_some(place.as_str())
    }
}
