//! Reads `send`, the template of the provider's request. What it does not name is mirrored: sent where the caller put it.

use http::{HeaderName, Method};
use serde_json::Value as Json;

use super::pattern::Pattern;
use super::{Pinned, is_own_header};
use crate::config::node::Node;
use crate::config::section::Section;
use crate::provider::template::{JsonTemplate, Template, Text};
use crate::question::field::{Field, Place};
use crate::question::kind::Kind;

/// The template of a route.
pub(crate) fn read(
    section: &Section<'_>,
    expose: &Pattern,
    fields: &[Field],
    pinned: &[Pinned],
    user: Option<usize>,
) -> Template {
    let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
    let stated = section.section("send");
    let own_shape = stated.is_some() && !section.has("operation");
    let send = section.section_or_empty("send");
    let reader = Reader { send: &send, names: &names };
    let mut template = Template {
        method: reader.method(expose),
        path: reader.path(expose).unwrap_or_default(),
        query: reader.pairs("query"),
        headers: reader.headers(),
        json: send.node("json").map(Node::json).and_then(|json| {
            if let Ok(shown) = toml::Value::try_from(&json) {
                send.show("json", shown);
            }
            reader.json(&json)
        }),
        form: reader.pairs("form"),
        user,
    };
    send.finish();
    let used = template.fields();
    for (index, field) in fields.iter().enumerate() {
        match (field.kind == Kind::Rest, used.contains(&index)) {
            (true, true) => named_rest(section, field),
            (false, true) => {}
            // The rest is sent whatever `send` says, which cannot name it.
            (false, false) if own_shape => unused(section, field),
            (_, false) => mirror(&mut template, index, field),
        }
    }
    for pinned in pinned {
        pin(&mut template, pinned);
    }
    template
}

fn unused(section: &Section<'_>, field: &Field) {
    section.fault(
        &format!("question.{}", field.name),
        "reaches nobody: `send` does not name it, so two questions would share one answer that differ in it",
        format!("use {{{}}} in send, or remove the field", field.name),
    );
}

fn named_rest(section: &Section<'_>, field: &Field) {
    let problem = format!("`send` names {{{}}}, which has names of its own", field.name);
    section.fault("send", problem, "remove it: the rest of a form is sent as it came");
}

struct Reader<'a> {
    send: &'a Section<'a>,
    names: &'a [String],
}

impl Reader<'_> {
    fn method(&self, expose: &Pattern) -> Method {
        let text = self.send.or("method", expose.method.to_string());
        match text.as_str() {
            "GET" => Method::GET,
            "POST" => Method::POST,
            _ => {
                self.send.fault("method", format!("{text:?} is not a method that can be sent"), "write \"GET\" or \"POST\"");
                Method::GET
            }
        }
    }

    fn path(&self, expose: &Pattern) -> Option<Text> {
        if !expose.is_readable() && !self.send.has("path") {
            return None;
        }
        let path = self.send.or("path", expose.path());
        if !path.starts_with('/') || path.contains(['?', '#']) {
            self.send.fault(
                "path",
                format!("{path:?} is not a path"),
                "write a path such as \"/v1/search\"; parameters go into `query`",
            );
            return None;
        }
        self.text("path", &path)
    }

    fn text(&self, key: &str, text: &str) -> Option<Text> {
        let parsed = Text::parse(text, self.names);
        parsed.map_err(|problem| self.send.fault(key, problem, "name a field of the question, as {field}")).ok()
    }

    fn pairs(&self, key: &'static str) -> Vec<(String, Text)> {
        let Some(section) = self.send.section(key) else { return Vec::new() };
        section.map::<String>().into_iter().filter_map(|(name, text)| Some((name, self.text(key, &text)?))).collect()
    }

    fn headers(&self) -> Vec<(HeaderName, Text)> {
        let mut headers = Vec::new();
        for (name, text) in self.pairs("headers") {
            match name.parse::<HeaderName>() {
                Ok(header) if !is_own_header(&header) => headers.push((header, text)),
                _ => self.send.fault(
                    "headers",
                    format!("{name:?} cannot be sent"),
                    "the gateway sets it itself, or it is no header name",
                ),
            }
        }
        headers
    }

    fn json(&self, json: &Json) -> Option<JsonTemplate> {
        let parsed = JsonTemplate::parse(json, self.names);
        parsed.map_err(|problem| self.send.fault("json", problem, "name a field of the question, as {field}")).ok()
    }
}

fn mirror(template: &mut Template, index: usize, field: &Field) {
    match &field.place {
        Place::Query(names) => template.query.extend(parameters(names, index)),
        Place::Form(names) => template.form.extend(parameters(names, index)),
        Place::Header(name) => template.headers.push((name.clone(), Text::field(index))),
        Place::Json(pointer) => insert(template, pointer, JsonTemplate::Field(index)),
        // The path template names it, or the check finds that nobody does.
        Place::Path(_) => {}
    }
}

fn parameters(names: &[String], index: usize) -> Vec<(String, Text)> {
    match names {
        // The rest of a form has names of its own.
        [] => vec![(String::new(), Text::field(index))],
        [one] => vec![(one.clone(), Text::field(index))],
        several => several.iter().enumerate().map(|(half, name)| (name.clone(), Text::half(index, half))).collect(),
    }
}

fn pin(template: &mut Template, pinned: &Pinned) {
    let text = || Text::literal(pinned.text());
    match &pinned.place {
        Place::Query(names) => template.query.extend(names.iter().map(|name| (name.clone(), text()))),
        Place::Form(names) => template.form.extend(names.iter().map(|name| (name.clone(), text()))),
        Place::Header(name) => template.headers.push((name.clone(), text())),
        Place::Json(pointer) => insert(template, pointer, JsonTemplate::Constant(pinned.value.clone())),
        Place::Path(_) => {}
    }
}

fn insert(template: &mut Template, pointer: &str, json: JsonTemplate) {
    let body = template.json.take().unwrap_or(JsonTemplate::Object(std::collections::BTreeMap::new()));
    template.json = Some(body.insert(pointer, json));
}
