//! How a refusal of ours looks on a native route: the provider's shape, with a status that its client libraries take as final
//! instead of hammering.

use http::StatusCode;
use serde_json::Value as Json;

use crate::config::section::Section;
use crate::refusal::{Code, Row};

/// A preset's refusal table.
#[derive(Clone, Debug)]
pub(crate) struct Refusals {
    stop: Shape,
    wait: Shape,
    trouble: Shape,
}

#[derive(Clone, Debug)]
struct Shape {
    status: StatusCode,
    body: Json,
}

impl Refusals {
    pub(crate) fn read(section: Section<'_>) -> Option<Self> {
        let stop = Shape::read(&section, "stop");
        let wait = Shape::read(&section, "wait");
        let trouble = Shape::read(&section, "trouble");
        section.finish();
        Some(Self { stop: stop?, wait: wait?, trouble: trouble? })
    }

    /// Status and JSON body for a refusal.
    pub(crate) fn render(&self, code: Code, detail: &str) -> (StatusCode, String) {
        let shape = match code.row() {
            Row::Stop => &self.stop,
            Row::Wait => &self.wait,
            Row::Trouble => &self.trouble,
        };
        (shape.status, fill(&shape.body, code, detail).to_string())
    }
}

impl Shape {
    fn read(section: &Section<'_>, key: &'static str) -> Option<Self> {
        const REMEDY: &str = "write { status = 403, body = { .. } }";
        let Some(below) = section.section(key) else {
            section.fault(key, "is missing from the refusal table", REMEDY);
            return None;
        };
        let status = below.need::<i64>("status").and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok());
        let body = below.node("body").map(super::super::config::node::Node::json);
        if status.is_none() || body.is_none() {
            section.fault(key, "is no refusal", REMEDY);
        }
        below.finish();
        Some(Self { status: status?, body: body? })
    }
}

/// `{detail}` and `{code}` stand for our words.
fn fill(body: &Json, code: Code, detail: &str) -> Json {
    match body {
        Json::String(text) => Json::String(text.replace("{code}", code.word()).replace("{detail}", detail)),
        Json::Array(items) => items.iter().map(|item| fill(item, code, detail)).collect(),
        Json::Object(members) => members.iter().map(|(name, member)| (name.clone(), fill(member, code, detail))).collect(),
        other => other.clone(),
    }
}
