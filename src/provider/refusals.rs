//! How a refusal of ours looks on a native route: the provider's shape, with a status that its client libraries take as final
//! instead of hammering. A row for each sort of refusal, and a shape of its own for a code that its row would put wrongly.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::Value as Json;

use crate::config::node::{Node, Value};
use crate::config::section::{Section, Setting};
use crate::refusal::{Code, Refusal, Row};
use crate::route::is_own_header;

/// A preset's refusal table.
#[derive(Clone, Debug)]
pub(crate) struct Refusals {
    stop: Shape,
    wait: Shape,
    trouble: Shape,
    codes: BTreeMap<Code, Shape>,
}

/// What a refusal is given.
#[derive(Clone, Debug)]
struct Shape {
    status: Status,
    headers: Vec<(HeaderName, HeaderValue)>,
    body: Json,
}

/// A refusal as it leaves.
pub(crate) struct Shaped {
    pub(crate) status: StatusCode,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// JSON.
    pub(crate) body: String,
}

impl Refusals {
    pub(crate) fn read(section: Section<'_>) -> Option<Self> {
        let row = |key| {
            let shape = section.section(key).map(|below| Shape::read(below, None));
            if shape.is_none() {
                section.fault(key, "is missing from the refusal table", Shape::REMEDY);
            }
            shape.flatten()
        };
        let (stop, wait, trouble) = (row("stop"), row("wait"), row("trouble"));
        let mut codes = BTreeMap::new();
        for code in Code::all() {
            let Some(below) = section.section(code.word()) else { continue };
            let row = match code.row() {
                Row::Stop => &stop,
                Row::Wait => &wait,
                Row::Trouble => &trouble,
            };
            codes.extend(Shape::read(below, row.as_ref()).map(|shape| (code, shape)));
        }
        section.finish();
        Some(Self { stop: stop?, wait: wait?, trouble: trouble?, codes })
    }

    /// A refusal in its shape.
    pub(crate) fn shape(&self, refusal: &Refusal) -> Shaped {
        let code = refusal.code;
        let shape = self.codes.get(&code).unwrap_or(match code.row() {
            Row::Stop => &self.stop,
            Row::Wait => &self.wait,
            Row::Trouble => &self.trouble,
        });
        let status = shape.status.0.unwrap_or_else(|| refusal.own_status());
        let words = Words { code: code.word(), detail: &refusal.detail, status: status.as_u16() };
        Shaped { status, headers: shape.headers.clone(), body: words.fill(&shape.body).to_string() }
    }
}

impl Shape {
    const REMEDY: &'static str = "write { status = 403, body = { .. } }";

    /// Reads one. A code's has from its row what it does not say itself.
    fn read(below: Section<'_>, row: Option<&Self>) -> Option<Self> {
        let status = if row.is_some() && !below.has("status") { row.map(|row| row.status) } else { below.need("status") };
        let body = below.node("body").map(Node::json).or_else(|| row.map(|row| row.body.clone()));
        if body.is_none() {
            below.fault("body", "is missing", Self::REMEDY);
        }
        let stated = below.section("headers").map(|section| read_headers(&section));
        let headers = stated.or_else(|| row.map(|row| row.headers.clone())).unwrap_or_default();
        below.finish();
        Some(Self { status: status?, headers, body: body? })
    }
}

fn read_headers(section: &Section<'_>) -> Vec<(HeaderName, HeaderValue)> {
    let mut headers = Vec::new();
    for (name, value) in section.map::<String>() {
        match (name.parse::<HeaderName>(), value.parse::<HeaderValue>()) {
            (Ok(name), Ok(value)) if !is_own_header(&name) => headers.push((name, value)),
            _ => section.fault(&name, "cannot be sent", "the gateway sets it itself, or it is no header"),
        }
    }
    headers
}

/// A status, or that of the refusal itself.
#[derive(Clone, Copy, Debug)]
struct Status(Option<StatusCode>);

impl Setting for Status {
    const REMEDY: &'static str = "write a status, such as 403, or \"own\" for the one the code has by itself";

    fn read(node: &Node) -> Result<Self, String> {
        if node.text() == Some("own") {
            return Ok(Self(None));
        }
        let number = match &node.value {
            Value::Integer(number) => u16::try_from(*number).ok(),
            _ => node.text().and_then(|text| text.parse().ok()),
        };
        let status = number.filter(|number| (200..600).contains(number)).and_then(|number| StatusCode::from_u16(number).ok());
        status.map(|status| Self(Some(status))).ok_or_else(|| format!("is {}, not a status", node.describe()))
    }

    fn show(&self) -> toml::Value {
        self.0.map_or_else(|| "own".into(), |status| i64::from(status.as_u16()).into())
    }
}

/// What may stand in a body: `{code}`, `{detail}`, `{status}`. A status with nothing but digits around it is a number.
struct Words<'a> {
    code: &'static str,
    detail: &'a str,
    status: u16,
}

impl Words<'_> {
    fn fill(&self, body: &Json) -> Json {
        match body {
            Json::String(text) => {
                let filled = text.replace("{status}", &self.status.to_string());
                match filled.parse::<u64>() {
                    Ok(number) if filled != *text => number.into(),
                    _ => Json::String(filled.replace("{code}", self.code).replace("{detail}", self.detail)),
                }
            }
            Json::Array(items) => items.iter().map(|item| self.fill(item)).collect(),
            Json::Object(members) => members.iter().map(|(name, member)| (name.clone(), self.fill(member))).collect(),
            other => other.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::node::{Origin, parse};
    use crate::config::section::Reading;

    fn read(source: &str) -> Result<Refusals, String> {
        let (mut faults, reading) = (crate::config::fault::Faults::default(), Reading::default());
        let table = parse("t.toml", source, &mut faults);
        let refusals = Refusals::read(Section::root(&reading, &table, &Origin::Env("test".into())));
        let faults = reading.faults.into_inner();
        if faults.is_empty() { refusals.ok_or_else(String::new) } else { Err(faults.to_string()) }
    }

    const ROWS: &str = "stop = { status = 403, body = { m = \"{code}: {detail}\", s = \"{status}\" }, headers = { x-retry = \"no\" } }\n\
                        wait = { status = 429, body = { s = \"is {status}\", n = \"20{status}\", t = \"7\" } }\ntrouble = { status = \"own\", body = {} }\n";

    fn shaped(refusals: &Refusals, refusal: &Refusal) -> (u16, usize, String) {
        let Shaped { status, headers, body } = refusals.shape(refusal);
        (status.as_u16(), headers.len(), body)
    }

    #[test]
    fn a_refusal_has_the_shape_of_its_row_or_its_own() {
        let table = read(&format!(
            "{ROWS}idempotency_in_progress = {{ status = 409 }}\nunauthenticated = {{ body = {{ c = 1 }}, headers = {{}} }}\n\
             outcome_unknown = {{ body = {{ s = \"{{status}}\" }} }}\n"
        ));
        let table = table.unwrap();
        let of = |code| shaped(&table, &Refusal::new(code, "no {status}"));
        assert_eq!(of(Code::SwitchedOff), (403, 1, r#"{"m":"switched_off: no {status}","s":403}"#.into()));
        assert_eq!(of(Code::SlowDown), (429, 0, r#"{"n":20429,"s":"is 429","t":"7"}"#.into()));
        assert_eq!(of(Code::IdempotencyInProgress), (409, 0, r#"{"n":20409,"s":"is 409","t":"7"}"#.into()));
        assert_eq!(of(Code::Unauthenticated), (403, 0, r#"{"c":1}"#.into()));
        assert_eq!(of(Code::CircuitOpen), (503, 0, "{}".into()));
        let unknown = Refusal::new(Code::OutcomeUnknown, "").answering(StatusCode::CONFLICT);
        assert_eq!(shaped(&table, &unknown), (409, 0, r#"{"s":409}"#.into()));
    }

    fn of_preset(name: &str) -> Refusals {
        let (table, _) = crate::provider::preset::find(name).unwrap();
        let reading = Reading::default();
        let table = Section::root(&reading, &table, &Origin::Env("test".into())).section("refusals").and_then(Refusals::read);
        table.unwrap_or_else(|| panic!("{name}"))
    }

    fn body(shaped: &Shaped) -> Json {
        serde_json::from_str(&shaped.body).unwrap()
    }

    /// Its clients raise what is not 2xx; the one for Node, if it is told to, tries 429 again.
    #[test]
    fn every_code_is_an_error_to_twilios_clients() {
        let table = of_preset("twilio");
        for code in Code::all() {
            let shaped = table.shape(&Refusal::new(code, "why"));
            let (status, body) = (shaped.status.as_u16(), body(&shaped));
            // To be tried again: only what was not sent, and may be soon.
            let may_be_soon = code.row() == Row::Wait || code == Code::UpstreamBusy;
            assert!((400..600).contains(&status) && (status != 429 || may_be_soon), "{code:?}: {status}");
            assert_eq!((body["code"].is_u64(), &body["status"]), (true, &status.into()), "{code:?}: {body}");
            assert_eq!(body["message"], format!("{}: why", code.word()));
            // With these four it would be read as another kind of error.
            assert!(["type", "title", "status", "code"].iter().any(|name| body.get(name).is_none()));
        }
    }

    /// Its clients take what has no `error` for success, and try 409 and 5xx again unless they are told not to.
    #[test]
    fn every_code_is_an_error_to_stripes_clients() {
        let table = of_preset("stripe");
        for code in Code::all() {
            let shaped = table.shape(&Refusal::new(code, "why"));
            let (status, body) = (shaped.status.as_u16(), body(&shaped));
            assert!((400..600).contains(&status) && body["error"]["type"].is_string(), "{code:?}: {status} {body}");
            assert_eq!(body["error"]["message"], format!("{}: why", code.word()));
            let told_not_to = shaped.headers.iter().any(|(name, value)| name == "stripe-should-retry" && value == "false");
            let again = (status == 409 || status >= 500) && !told_not_to;
            let final_ = matches!(code, Code::UpstreamDenied | Code::NotCached);
            assert_eq!(again, code == Code::IdempotencyInProgress || code.row() == Row::Trouble && !final_, "{code:?}: {status}");
        }
    }

    #[test]
    fn what_is_no_table_is_a_fault() {
        for (line, fault) in [
            ("outcome_unkown = { status = 409 }", "did you mean `outcome_unknown`?"),
            ("busy = { status = 99 }", "busy.status"),
            ("busy = { status = \"mine\" }", "busy.status"),
            ("busy = { statsu = 409 }", "busy.statsu"),
            ("busy = { headers = { Connection = \"close\" } }", "busy.headers.Connection"),
            ("busy = 409", "busy: is"),
        ] {
            assert!(read(&format!("{ROWS}{line}\n")).unwrap_err().contains(fault), "{line}");
        }
        assert!(read("stop = { status = 403 }").unwrap_err().contains("stop.body"));
    }
}
