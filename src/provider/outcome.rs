//! What an answer means, by rules that are data: status and JSONPath, first match wins.

use http::StatusCode;
use serde_json::Value as Json;
use serde_json_path::JsonPath;

use crate::answer::Outcome;
use crate::config::node::{Node, Value as NodeValue};
use crate::config::section::{Reading, Section};

/// The rules of one operation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rules(Vec<Rule>);

#[derive(Clone, Debug)]
struct Rule {
    statuses: Option<(u16, u16)>,
    test: Test,
    outcome: Outcome,
}

#[derive(Clone, Debug)]
enum Test {
    Always,
    /// Some node is there (and not `null`).
    Exists(JsonPath),
    /// No node is there.
    Absent(JsonPath),
    /// Some node is one of these texts or numbers.
    In(JsonPath, Vec<String>),
    /// Some node is a number below this one.
    Below(JsonPath, i32),
}

impl Rules {
    /// Reads `outcomes`, a list of `{ status, at, in | below | absent, outcome }`.
    pub(crate) fn read(section: &Section<'_>, key: &'static str) -> Self {
        let Some(node) = section.node(key) else { return Self::default() };
        let path = section.path(key);
        let NodeValue::Array(items) = &node.value else {
            section.fault(key, format!("is {}, not a list of rules", node.describe()), "write outcomes = [{ .. }]");
            return Self::default();
        };
        Self(items.iter().filter_map(|item| Rule::read(section.reading(), item, &path)).collect())
    }

    /// What an answer means. `body` is none where it is not JSON: then only rules on the status can match, and a success that
    /// should have been JSON is a failure.
    pub(crate) fn classify(&self, status: StatusCode, body: Option<&Json>) -> Outcome {
        let matched = self.0.iter().find(|rule| rule.matches(status, body));
        match matched {
            Some(rule) => rule.outcome,
            None => by_status(status, body),
        }
    }
}

fn by_status(status: StatusCode, body: Option<&Json>) -> Outcome {
    match status.as_u16() {
        200..=299 if body.is_none() => Outcome::Failed,
        200..=299 => Outcome::Answered,
        404 | 410 => Outcome::NotFound,
        401 | 402 | 403 | 407 => Outcome::Denied,
        429 => Outcome::Busy,
        400..=407 | 409..=499 => Outcome::Rejected,
        _ => Outcome::Failed,
    }
}

impl Rule {
    fn read(reading: &Reading, node: &Node, path: &str) -> Option<Self> {
        const REMEDY: &str = "write { status = \"200\", at = \"$.status\", in = [\"ZERO_RESULTS\"] (or below = 3, or absent = true), outcome = \"not_found\" }";
        let wrong = |problem: String| {
            reading.fault(&node.origin, path, problem, REMEDY);
            None
        };
        let Some(table) = node.table() else { return wrong(format!("a rule is {}", node.describe())) };
        for key in table.keys() {
            if !["status", "at", "in", "below", "absent", "outcome"].contains(&key.as_str()) {
                return wrong(format!("a rule has the unknown key {key:?}"));
            }
        }
        let text = |key: &str| table.get(key).and_then(Node::text);
        let Some(outcome) = text("outcome").and_then(Outcome::from_word) else { return wrong("a rule names no outcome".into()) };
        let statuses = match text("status").map(statuses) {
            Some(None) => return wrong("a rule's status is not \"200\", \"4xx\" or \"500-599\"".into()),
            Some(range) => range,
            None => None,
        };
        let at = match text("at").map(JsonPath::parse) {
            Some(Err(error)) => return wrong(format!("a rule's path is not JSONPath: {error}")),
            Some(Ok(path)) => Some(path),
            None => None,
        };
        let test = match (at, table.get("in"), table.get("below"), table.contains_key("absent")) {
            (None, None, None, false) => Test::Always,
            (Some(at), Some(Node { value: NodeValue::Array(items), .. }), None, false) => {
                Test::In(at, items.iter().map(|item| scalar(&item.json())).collect())
            }
            (Some(at), None, Some(Node { value: NodeValue::Integer(limit), .. }), false) if i32::try_from(*limit).is_ok() => {
                Test::Below(at, i32::try_from(*limit).unwrap_or_default())
            }
            (Some(at), None, None, true) => Test::Absent(at),
            (Some(at), None, None, false) => Test::Exists(at),
            _ => return wrong("a rule's test is not clear".into()),
        };
        Some(Self { statuses, test, outcome })
    }

    fn matches(&self, status: StatusCode, body: Option<&Json>) -> bool {
        if self.statuses.is_some_and(|(low, high)| !(low..=high).contains(&status.as_u16())) {
            return false;
        }
        let nodes = |path: &JsonPath| body.map(|body| path.query(body).all()).unwrap_or_default();
        match &self.test {
            Test::Always => true,
            Test::Exists(path) => nodes(path).iter().any(|node| !node.is_null()),
            Test::Absent(path) => body.is_some() && nodes(path).iter().all(|node| node.is_null()),
            Test::In(path, texts) => nodes(path).iter().any(|node| texts.contains(&scalar(node))),
            Test::Below(path, limit) => {
                nodes(path).iter().any(|node| node.as_f64().is_some_and(|number| number < f64::from(*limit)))
            }
        }
    }
}

fn scalar(json: &Json) -> String {
    json.as_str().map_or_else(|| json.to_string(), ToOwned::to_owned)
}

/// `200`, `4xx`, `500-599`.
pub(super) fn statuses(text: &str) -> Option<(u16, u16)> {
    if let Some(class) = text.strip_suffix("xx") {
        let class: u16 = class.parse().ok().filter(|class| (1..=5).contains(class))?;
        return Some((class * 100, class * 100 + 99));
    }
    let (low, high) = text.split_once('-').unwrap_or((text, text));
    Some((low.parse().ok()?, high.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_numbers_classes_and_ranges() {
        assert_eq!(statuses("200"), Some((200, 200)));
        assert_eq!(statuses("4xx"), Some((400, 499)));
        assert_eq!(statuses("500-504"), Some((500, 504)));
        assert_eq!((statuses("x"), statuses("9xx")), (None, None));
    }

    #[test]
    fn without_rules_the_status_decides_and_a_success_must_be_json() {
        let json = Json::Null;
        let classify = |status: u16, body| Rules::default().classify(StatusCode::from_u16(status).unwrap(), body);
        assert_eq!(classify(200, Some(&json)), Outcome::Answered);
        assert_eq!(classify(200, None), Outcome::Failed);
        assert_eq!(classify(302, None), Outcome::Failed);
        assert_eq!(classify(404, None), Outcome::NotFound);
        assert_eq!(classify(403, None), Outcome::Denied);
        assert_eq!(classify(429, None), Outcome::Busy);
        assert_eq!(classify(422, None), Outcome::Rejected);
        assert_eq!(classify(503, None), Outcome::Failed);
    }
}
