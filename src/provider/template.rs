//! What is sent to the provider: a template of the request, filled with the asked form of a question.

use std::fmt::Write as _;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method};
use serde_json::{Map, Value as Json};

use crate::question::wire::encode_segment;
use crate::question::{Asked, Value};

mod pairs;

use pairs::pairs;

/// A text with `{field}` in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text(Vec<Part>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Literal(String),
    /// Index of a field.
    Field(usize),
    /// One coordinate of a latlng: latitude 0, longitude 1.
    Half(usize, usize),
}

/// The values of a question, in the order of the route's fields; absent ones are none.
pub(crate) type Values = [Option<Value>];

impl Text {
    pub(crate) fn literal(text: impl Into<String>) -> Self {
        Self(vec![Part::Literal(text.into())])
    }

    pub(crate) fn field(index: usize) -> Self {
        Self(vec![Part::Field(index)])
    }

    pub(crate) fn half(index: usize, half: usize) -> Self {
        Self(vec![Part::Half(index, half)])
    }

    /// Reads `{name}`; `{{` and `}}` stand for the braces themselves.
    pub(crate) fn parse(text: &str, fields: &[String]) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            let (before, tail) = rest.split_at(at);
            literal.push_str(before);
            if let Some(tail) = tail.strip_prefix("{{").or_else(|| tail.strip_prefix("}}")) {
                literal.push_str(if rest.as_bytes().get(at) == Some(&b'{') { "{" } else { "}" });
                rest = tail;
                continue;
            }
            let Some((name, tail)) = tail.strip_prefix('{').and_then(|tail| tail.split_once('}')) else {
                return Err(format!("{text:?} has a brace without its partner"));
            };
            let Some(index) = fields.iter().position(|field| field == name) else {
                return Err(format!("{text:?} names {name:?}, which is no field of the question"));
            };
            if !literal.is_empty() {
                parts.push(Part::Literal(std::mem::take(&mut literal)));
            }
            parts.push(Part::Field(index));
            rest = tail;
        }
        literal.push_str(rest);
        if !literal.is_empty() || parts.is_empty() {
            parts.push(Part::Literal(literal));
        }
        Ok(Self(parts))
    }

    /// The fields it needs.
    pub(crate) fn fields(&self) -> impl Iterator<Item = usize> {
        self.0.iter().filter_map(|part| match part {
            Part::Literal(_) => None,
            Part::Field(index) | Part::Half(index, _) => Some(*index),
        })
    }

    /// The text if it holds no field.
    fn constant(&self) -> Option<&str> {
        if let [Part::Literal(text)] = self.0.as_slice() { Some(text) } else { None }
    }

    /// Filled in; nothing if a field of it is absent. `write` decides how a value is encoded.
    fn fill(&self, values: &Values, write: impl Fn(&str, &mut String) -> Option<()>) -> Option<String> {
        let mut out = String::new();
        for part in &self.0 {
            match part {
                Part::Literal(text) => out.push_str(text),
                Part::Field(index) => write(&values.get(*index)?.as_ref()?.asked.text(), &mut out)?,
                Part::Half(index, half) => {
                    let asked = values.get(*index)?.as_ref()?.asked.text();
                    write(asked.split(',').nth(*half)?, &mut out)?;
                }
            }
        }
        Some(out)
    }

    /// The value it is, if it is one and nothing else.
    fn alone<'a>(&self, values: &'a Values) -> Option<&'a Asked> {
        let [Part::Field(index)] = self.0.as_slice() else { return None };
        values.get(*index)?.as_ref().map(|value| &value.asked)
    }

    fn plain(&self, values: &Values) -> Option<String> {
        self.fill(values, |value, out| {
            out.push_str(value);
            Some(())
        })
    }

    fn describe(&self, out: &mut String) {
        for part in &self.0 {
            let _ = match part {
                Part::Literal(text) => write!(out, "{}:{text}", text.len()),
                Part::Field(index) => write!(out, "{{{index}}}"),
                Part::Half(index, half) => write!(out, "{{{index}.{half}}}"),
            };
        }
    }
}

/// A JSON body with fields in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum JsonTemplate {
    Constant(Json),
    /// The field's value with its own JSON type.
    Field(usize),
    Text(Text),
    Array(Vec<JsonTemplate>),
    /// Members in the order of their names; a member whose field is absent is left out.
    Object(std::collections::BTreeMap<String, JsonTemplate>),
}

impl JsonTemplate {
    pub(crate) fn parse(json: &Json, fields: &[String]) -> Result<Self, String> {
        Ok(match json {
            Json::String(text) => {
                let parsed = Text::parse(text, fields)?;
                match (parsed.0.as_slice(), parsed.constant()) {
                    ([Part::Field(index)], _) => Self::Field(*index),
                    (_, Some(text)) => Self::Constant(text.into()),
                    _ => Self::Text(parsed),
                }
            }
            Json::Array(items) => Self::Array(items.iter().map(|item| Self::parse(item, fields)).collect::<Result<_, _>>()?),
            Json::Object(members) => {
                Self::Object(members.iter().map(|(name, json)| Ok((name.clone(), Self::parse(json, fields)?))).collect::<Result<
                    _,
                    String,
                >>(
                )?)
            }
            other => Self::Constant(other.clone()),
        })
    }

    /// Puts a template at a JSON pointer, making the objects on the way.
    pub(crate) fn insert(self, pointer: &str, template: Self) -> Self {
        let Some(path) = pointer.strip_prefix('/') else { return template };
        let (first, rest) = path.find('/').map_or((path, ""), |at| path.split_at(at));
        let name = first.replace("~1", "/").replace("~0", "~");
        let mut members = if let Self::Object(members) = self { members } else { std::collections::BTreeMap::new() };
        let below = members.remove(&name).unwrap_or(Self::Object(std::collections::BTreeMap::new()));
        members.insert(name, below.insert(rest, template));
        Self::Object(members)
    }

    fn fill(&self, values: &Values) -> Option<Json> {
        Some(match self {
            Self::Constant(json) => json.clone(),
            Self::Field(index) => values.get(*index)?.as_ref()?.asked.json(),
            Self::Text(text) => Json::String(text.plain(values)?),
            Self::Array(items) => Json::Array(items.iter().filter_map(|item| item.fill(values)).collect()),
            Self::Object(members) => {
                let filled: Map<String, Json> =
                    members.iter().filter_map(|(name, member)| Some((name.clone(), member.fill(values)?))).collect();
                if filled.is_empty() && !members.is_empty() {
                    return None;
                }
                Json::Object(filled)
            }
        })
    }

    fn fields(&self, out: &mut Vec<usize>) {
        match self {
            Self::Constant(_) => {}
            Self::Field(index) => out.push(*index),
            Self::Text(text) => out.extend(text.fields()),
            Self::Array(items) => items.iter().for_each(|item| item.fields(out)),
            Self::Object(members) => members.values().for_each(|member| member.fields(out)),
        }
    }

    fn describe(&self, out: &mut String) {
        match self {
            Self::Constant(json) => {
                let _ = write!(out, "{json}");
            }
            Self::Field(index) => {
                let _ = write!(out, "{{{index}}}");
            }
            Self::Text(text) => text.describe(out),
            Self::Array(items) => {
                out.push('[');
                for item in items {
                    item.describe(out);
                    out.push(',');
                }
                out.push(']');
            }
            Self::Object(members) => {
                out.push('<');
                for (name, member) in members {
                    let _ = write!(out, "{}:{name}=", name.len());
                    member.describe(out);
                    out.push(',');
                }
                out.push('>');
            }
        }
    }
}

/// The request as the route sends it, without the credential.
#[derive(Clone, Debug, Default)]
pub(crate) struct Template {
    pub(crate) method: Method,
    pub(crate) path: Text,
    pub(crate) query: Vec<(String, Text)>,
    pub(crate) headers: Vec<(HeaderName, Text)>,
    pub(crate) json: Option<JsonTemplate>,
    pub(crate) form: Vec<(String, Text)>,
    /// The field that is the user of the credential.
    pub(crate) user: Option<usize>,
}

/// A request ready to be sent, but for the credential.
#[derive(Clone, Debug)]
pub(crate) struct Rendered {
    pub(crate) method: Method,
    /// Path and query, percent-encoded.
    pub(crate) target: String,
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    pub(crate) body: Option<Bytes>,
    /// The user of the credential, where the question names it.
    pub(crate) user: Option<String>,
}

impl Template {
    /// Fills it in. Every value is percent-encoded on its own, after normalisation; a parameter whose field is absent is left
    /// out. Nothing, if the path or a header cannot be built.
    pub(crate) fn render(&self, values: &Values) -> Option<Rendered> {
        let mut target = self.path.fill(values, |value, out| encode_segment(value, out).ok())?;
        let query = pairs(&self.query, values);
        if !query.is_empty() {
            target.push(if target.contains('?') { '&' } else { '?' });
            target.push_str(&query);
        }
        let mut headers = Vec::with_capacity(self.headers.len() + 1);
        for (name, text) in &self.headers {
            if let Some(value) = text.plain(values) {
                headers.push((name.clone(), HeaderValue::from_str(&value).ok()?));
            }
        }
        let body = if let Some(json) = &self.json {
            let json = json.fill(values).unwrap_or_else(|| Json::Object(Map::new()));
            headers.push((http::header::CONTENT_TYPE, HeaderValue::from_static("application/json")));
            Some(Bytes::from(json.to_string()))
        } else if self.form.is_empty() {
            None
        } else {
            headers.push((http::header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")));
            Some(Bytes::from(pairs(&self.form, values)))
        };
        let user = match self.user {
            Some(index) => Some(user(&values.get(index)?.as_ref()?.asked)?),
            None => None,
        };
        Some(Rendered { method: self.method.clone(), target, headers, body, user })
    }

    /// Whether a value may be one that cannot be sent: only a path, a header and a user are choosy.
    pub(crate) fn is_choosy(&self) -> bool {
        self.path.fields().next().is_some()
            || self.user.is_some()
            || self.headers.iter().any(|(_, text)| text.fields().next().is_some())
    }

    /// The JSON body as it will be sent.
    pub(crate) fn body_json(&self, values: &Values) -> Option<Json> {
        self.json.as_ref()?.fill(values)
    }

    /// The value of a query parameter as it will be sent.
    pub(crate) fn query_value(&self, name: &str, values: &Values) -> Option<String> {
        self.query.iter().find(|(known, _)| known == name)?.1.plain(values)
    }

    /// Which fields reach the provider.
    pub(crate) fn fields(&self) -> Vec<usize> {
        let mut used: Vec<usize> = self.path.fields().collect();
        used.extend(self.query.iter().chain(&self.form).flat_map(|(_, text)| text.fields()));
        used.extend(self.headers.iter().flat_map(|(_, text)| text.fields()));
        used.extend(self.user);
        if let Some(json) = &self.json {
            json.fields(&mut used);
        }
        used
    }

    /// Everything of it that changes the request, as one unambiguous text: part of every key.
    pub(crate) fn fingerprint(&self) -> String {
        let mut out = format!("{} ", self.method);
        self.path.describe(&mut out);
        for (kind, pairs) in [("?", &self.query), ("form", &self.form)] {
            for (name, text) in pairs {
                let _ = write!(out, "\n{kind}{}:{name}=", name.len());
                text.describe(&mut out);
            }
        }
        for (name, text) in &self.headers {
            let _ = write!(out, "\n{name}: ");
            text.describe(&mut out);
        }
        if let Some(json) = &self.json {
            out.push_str("\njson ");
            json.describe(&mut out);
        }
        out
    }
}

/// What stands before the colon of HTTP Basic, which holds none.
fn user(asked: &Asked) -> Option<String> {
    let user = asked.text().into_owned();
    let parts = |c: char| c == ':' || c.is_control();
    (!user.is_empty() && !user.contains(parts)).then_some(user)
}

#[cfg(test)]
mod tests;
