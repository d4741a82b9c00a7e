//! Curated answers: kept by hand in a file, asked before the cache, free.
//!
//! The file holds a JSON object a line: `{"question": {"q": ".."}, "answer": {..}, "status": 200}`. A question is matched in its
//! canonical form, so neither its spelling nor the order of `unordered` fields matters. The answer goes out as it is written: a
//! reply shape is for what the provider says.

use std::collections::HashMap;
use std::sync::Arc;

use http::{HeaderValue, StatusCode, header};
use serde_json::Value as Json;

use super::validate::order;
use super::{Next, Stage, Verdict};
use crate::answer::{Answer, Kept, Outcome, Source};
use crate::call::Call;
use crate::clock::Clock;
use crate::config::section::Section;
use crate::question::field::Field;
use crate::question::{Raw, Value};

/// The canonical form of a question: the keys of its fields, in their order.
type Form = Vec<Option<String>>;

/// A file of answers.
#[derive(Debug, Default)]
pub(crate) struct Answers(HashMap<Form, (StatusCode, String)>);

impl Answers {
    pub(crate) fn read(section: &Section<'_>, fields: &[Field], unordered: &[Vec<usize>]) -> Option<Arc<Self>> {
        const REMEDY: &str = "write lines such as {\"question\": {\"q\": \"..\"}, \"answer\": {..}, \"status\": 200}";
        let path: String = section.get("curated")?;
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) => {
                section.fault("curated", format!("{path} cannot be read: {error}"), "write the path of a file of answers");
                return None;
            }
        };
        let mut answers = Self::default();
        for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
            match parse(line, fields, unordered) {
                Ok((form, answer)) => {
                    answers.0.insert(form, answer);
                }
                Err(problem) => section.fault("curated", format!("{path}:{}: {problem}", number + 1), REMEDY),
            }
        }
        Some(Arc::new(answers))
    }
}

fn parse(line: &str, fields: &[Field], unordered: &[Vec<usize>]) -> Result<(Form, (StatusCode, String)), String> {
    let json: Json = serde_json::from_str(line).map_err(|error| format!("is not JSON: {error}"))?;
    let question = json.get("question").and_then(Json::as_object).ok_or("has no question")?;
    if let Some(name) = question.keys().find(|name| !fields.iter().any(|field| field.name == **name)) {
        return Err(format!("{name:?} is no field of the question"));
    }
    let mut values = fields.iter().map(|field| value(field, question.get(&field.name))).collect::<Result<Vec<_>, _>>()?;
    order(unordered, &mut values);
    let status = json
        .get("status")
        .map_or(Some(200), Json::as_u64)
        .and_then(|status| StatusCode::from_u16(u16::try_from(status).ok()?).ok());
    let answer = json.get("answer").ok_or("has no answer")?;
    Ok((form(&values), (status.ok_or("has no status that HTTP knows")?, answer.to_string())))
}

fn value(field: &Field, given: Option<&Json>) -> Result<Option<Value>, String> {
    let Some(json) = given else { return Ok(field.default.clone()) };
    let raw = json.as_str().map_or(Raw::Json(json), Raw::Text);
    field.take(raw).map(Some).map_err(|invalid| format!("`{}` {}", field.name, invalid.reason))
}

fn form(values: &[Option<Value>]) -> Form {
    values.iter().map(|value| value.as_ref().map(|value| value.key.clone())).collect()
}

/// The stage.
#[derive(Clone)]
pub(crate) struct Curated {
    answers: Arc<Answers>,
    clock: Clock,
}

impl Curated {
    pub(crate) fn new(answers: Option<&Arc<Answers>>, clock: Clock) -> Option<Self> {
        Some(Self { answers: Arc::clone(answers?), clock })
    }
}

impl Stage for Curated {
    type In = Call;
    type Out = Call;

    async fn handle(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        let Some((status, body)) = self.answers.0.get(&form(&call.question.0)) else { return next.run(call).await };
        let mut kept = Kept::passing(*status, Outcome::Answered, body.clone().into(), self.clock.now());
        kept.headers.push((header::CONTENT_TYPE, HeaderValue::from_static("application/json")));
        Ok(Answer { kept: Arc::new(kept), source: Source::Curated })
    }
}
