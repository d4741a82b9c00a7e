//! Finds every field of the question in a request, and everything in the request that is no field.

use std::borrow::Cow;
use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::Value as Json;

use super::Shared;
use super::body::Sort;
use super::names::{Names, Owner};
use crate::call::{Question, Request};
use crate::question::field::{Field, Place};
use crate::question::json;
use crate::question::wire;
use crate::question::{Raw, Value};
use crate::refusal::{Code, Refusal};
use crate::route::Route;

/// One pair of a query or form, decoded. Without an owner it is a stranger's.
struct Parameter<'a> {
    name: Cow<'a, str>,
    value: Cow<'a, str>,
    owner: Option<Owner>,
}

/// The parts of a request that hold values, each decoded once.
struct Found<'a> {
    request: &'a Request,
    route: &'a Route,
    query: Vec<Parameter<'a>>,
    form: Vec<Parameter<'a>>,
    /// The body; nothing, where there is none, which is not `null`.
    json: Option<Json>,
}

pub(super) fn question(shared: &Shared, request: &Request, body: &Bytes) -> Result<Question, Refusal> {
    let route = &*shared.route;
    let query = parameters(request.head.uri.query().unwrap_or_default(), "query", &shared.query)?;
    let text = |bytes: &Bytes| std::str::from_utf8(bytes).map(ToOwned::to_owned).map_err(|_| malformed("body", "is not UTF-8"));
    let (form_text, json) = match shared.body {
        None => (String::new(), None),
        Some(Sort::Form) => (text(body)?, None),
        Some(Sort::Json) => (String::new(), parse_json(body)?),
    };
    let found = Found { request, route, query, form: parameters(&form_text, "body", &shared.form)?, json };
    found.refuse_unknown()?;
    found.refuse_unpinned()?;
    // A loop, where `collect` would not know how much room to make: every hit passes here.
    let mut values = Vec::with_capacity(route.fields.len());
    for (index, field) in route.fields.iter().enumerate() {
        values.push(match found.raw(index, field)? {
            Some(raw) => Some(field.take(raw).map_err(|invalid| refused(field, invalid.reason))?),
            None if field.required => return Err(refused(field, "is missing")),
            None => field.default.clone(),
        });
    }
    complete(route, &values)?;
    order(&route.unordered, &mut values);
    let question = Question(values);
    if route.template.is_choosy() && route.template.render(&question.0).is_none() {
        return Err(Refusal::new(Code::InvalidQuestion, "a value cannot be sent to the provider in its place"));
    }
    Ok(question)
}

/// A question given by its fields instead of a request.
pub(super) fn given(route: &Route, fields: &serde_json::Map<String, Json>) -> Result<Question, Refusal> {
    if let Some(name) = fields.keys().find(|name| route.field(name).is_none()) {
        return Err(unknown(name));
    }
    let read = |field: &Field| match fields.get(&field.name) {
        None if field.required => Err(refused(field, "is missing")),
        None => Ok(field.default.clone()),
        Some(json) => {
            let raw = json.as_str().map_or(Raw::Json(json), Raw::Text);
            field.take(raw).map(Some).map_err(|invalid| refused(field, invalid.reason))
        }
    };
    let mut values = route.fields.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    order(&route.unordered, &mut values);
    Ok(Question(values))
}

fn parameters<'a>(text: &'a str, place: &str, names: &Names) -> Result<Vec<Parameter<'a>>, Refusal> {
    let mut parameters = Vec::new();
    for pair in wire::pairs(text) {
        let (name, value) = pair.map_err(|error| malformed(place, error.to_string()))?;
        parameters.push(Parameter { owner: names.owner(&name), name, value });
    }
    Ok(parameters)
}

fn malformed(place: &str, reason: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::field(Code::InvalidQuestion, place, reason)
}

fn parse_json(body: &Bytes) -> Result<Option<Json>, Refusal> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    json::parse(body).map(Some).map_err(|error| match &error {
        json::Malformed::Syntax { .. } => malformed("body", error.to_string()),
        json::Malformed::Twice(pointer) => Refusal::field(Code::DuplicateField, shown(pointer), error.to_string()),
    })
}

impl Found<'_> {
    fn refuse_unknown(&self) -> Result<(), Refusal> {
        if let Some(stranger) = self.query.iter().chain(&self.form).find(|parameter| parameter.owner.is_none()) {
            return Err(unknown(&stranger.name));
        }
        self.json.as_ref().map_or(Ok(()), |json| self.refuse_unknown_members(json))
    }

    /// Every member of the body must be a field, lie inside one, or lead to one.
    fn refuse_unknown_members(&self, body: &Json) -> Result<(), Refusal> {
        let route = self.route;
        let places = route.fields.iter().map(|field| &field.place).chain(route.pinned.iter().map(|pinned| &pinned.place));
        let mut pointers: BTreeSet<&str> = route.ignored.json.iter().map(String::as_str).collect();
        pointers.extend(places.filter_map(|place| if let Place::Json(pointer) = place { Some(pointer.as_str()) } else { None }));
        let mut open = vec![(String::new(), body)];
        while let Some((path, json)) = open.pop() {
            if pointers.contains(path.as_str()) {
                continue;
            }
            let leads = pointers.iter().any(|pointer| pointer.strip_prefix(&path).is_some_and(|rest| rest.starts_with('/')));
            match json {
                Json::Object(members) if leads => {
                    let below = |name: &String| format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                    open.extend(members.iter().map(|(name, json)| (below(name), json)));
                }
                _ if leads => return Err(malformed(if path.is_empty() { "body" } else { &path }, "must be an object")),
                _ => return Err(unknown(&path)),
            }
        }
        Ok(())
    }

    /// A pinned value may be sent, but no other in its place.
    fn refuse_unpinned(&self) -> Result<(), Refusal> {
        for pinned in &self.route.pinned {
            let text = pinned.text();
            let same = match &pinned.place {
                Place::Query(names) => all_equal(&self.query, names, &text),
                Place::Form(names) => all_equal(&self.form, names, &text),
                Place::Header(name) => {
                    self.request.head.headers.get_all(name).iter().all(|value| value.as_bytes() == text.as_bytes())
                }
                Place::Json(pointer) => self.member(pointer).is_none_or(|json| *json == pinned.value),
                Place::Path(_) => true,
            };
            if !same {
                return Err(Refusal::field(Code::InvalidQuestion, &pinned.name, "is fixed on this route"));
            }
        }
        Ok(())
    }

    /// What was given for a field; `index` is its place among the fields.
    fn raw(&self, index: usize, field: &Field) -> Result<Option<Raw<'_>>, Refusal> {
        // Most fields of most questions are absent.
        let given = |parameters: &[Parameter<'_>]| parameters.iter().any(|one| one.owner == Some(Owner::Field(index)));
        match &field.place {
            Place::Query(names) if given(&self.query) => parameter(&self.query, names, field),
            Place::Form(names) if names.is_empty() => Ok(rest(&self.form, index)),
            Place::Form(names) if given(&self.form) => parameter(&self.form, names, field),
            Place::Query(_) | Place::Form(_) => Ok(None),
            Place::Path(name) => {
                let part = self.route.expose.position(name).and_then(|at| self.request.path.get(at));
                Ok(part.map(|part| Raw::Text(part)))
            }
            Place::Header(name) => self.header(name, field),
            Place::Json(pointer) => Ok(self.member(pointer).map(Raw::Json)),
        }
    }

    fn member(&self, pointer: &str) -> Option<&Json> {
        self.json.as_ref()?.pointer(pointer)
    }

    fn header(&self, name: &http::HeaderName, field: &Field) -> Result<Option<Raw<'_>>, Refusal> {
        let mut lines = Vec::new();
        for value in self.request.head.headers.get_all(name) {
            lines.push(value.to_str().map_err(|_| refused(field, "is not visible ASCII"))?);
        }
        several(lines, field)
    }
}

fn refused(field: &Field, reason: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::field(Code::InvalidQuestion, &field.name, reason)
}

fn unknown(name: &str) -> Refusal {
    Refusal::field(Code::UnknownField, shown(name), "is not a field of this route")
}

/// Names of strangers are shown, but not at any length.
fn shown(name: &str) -> String {
    name.chars().take(64).collect()
}

fn all_equal(parameters: &[Parameter<'_>], names: &[String], text: &str) -> bool {
    names.iter().flat_map(|name| values(parameters, name)).all(|value| value == text)
}

/// The value of a field in query or form.
fn parameter<'a>(parameters: &'a [Parameter<'_>], names: &[String], field: &Field) -> Result<Option<Raw<'a>>, Refusal> {
    if let [first, second] = names {
        let (mut first, mut second) = (values(parameters, first), values(parameters, second));
        let pair = (first.next(), second.next());
        if first.next().is_some() || second.next().is_some() {
            return Err(duplicate(field));
        }
        return match pair {
            (None, None) => Ok(None),
            (Some(latitude), Some(longitude)) => Ok(Some(Raw::Pair(latitude, longitude))),
            _ => Err(refused(field, "needs both of its parameters")),
        };
    }
    let Some(name) = names.first() else { return Ok(None) };
    let mut all = values(parameters, name);
    match (all.next(), all.next()) {
        (None, _) => Ok(None),
        (Some(one), None) => Ok(Some(Raw::Text(one))),
        (Some(first), Some(second)) => several([first, second].into_iter().chain(all).collect(), field),
    }
}

/// What no other field has claimed; also what is empty, which may have a meaning there.
fn rest<'a>(parameters: &'a [Parameter<'_>], index: usize) -> Option<Raw<'a>> {
    let claimed = parameters.iter().filter(|one| one.owner == Some(Owner::Field(index)));
    let pairs: Vec<(&str, &str)> = claimed.map(|one| (one.name.as_ref(), one.value.as_ref())).collect();
    (!pairs.is_empty()).then_some(Raw::Form(pairs))
}

/// The values under a name. An empty value is an absent one.
fn values<'a>(parameters: &'a [Parameter<'_>], name: &str) -> impl Iterator<Item = &'a str> {
    let named = parameters.iter().filter(move |parameter| parameter.name == name);
    named.map(|parameter| parameter.value.as_ref()).filter(|value| !value.is_empty())
}

fn several<'a>(values: Vec<&'a str>, field: &Field) -> Result<Option<Raw<'a>>, Refusal> {
    match values.as_slice() {
        [] => Ok(None),
        [one] => Ok(Some(Raw::Text(one))),
        _ if field.kind.single() => Err(duplicate(field)),
        _ => Ok(Some(Raw::Many(values))),
    }
}

fn duplicate(field: &Field) -> Refusal {
    Refusal::field(Code::DuplicateField, &field.name, "is given more than once")
}

/// One of the alternatives must be there.
fn complete(route: &Route, values: &[Option<Value>]) -> Result<(), Refusal> {
    let present = |index: &usize| values.get(*index).is_some_and(Option::is_some);
    if route.one_of.is_empty() || route.one_of.iter().any(|group| group.iter().all(present)) {
        return Ok(());
    }
    let names = |group: &Vec<usize>| {
        let names: Vec<&str> =
            group.iter().filter_map(|index| route.fields.get(*index)).map(|field| field.name.as_str()).collect();
        names.join(" with ")
    };
    let groups: Vec<String> = route.one_of.iter().map(names).collect();
    let field = groups.first().cloned().unwrap_or_default();
    Err(Refusal::field(Code::InvalidQuestion, field, format!("is missing: give one of {}", groups.join(", "))))
}

/// Whole values change places into sorted order: in the key and in what is sent.
pub(crate) fn order(groups: &[Vec<usize>], values: &mut [Option<Value>]) {
    for group in groups {
        let mut taken: Vec<Option<Value>> = group.iter().map(|index| values.get_mut(*index).and_then(Option::take)).collect();
        taken.sort_by(|a, b| match (a, b) {
            (Some(a), Some(b)) => a.key.cmp(&b.key),
            // Absent values stand last.
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        for (index, value) in group.iter().zip(taken) {
            if let Some(place) = values.get_mut(*index) {
                *place = value;
            }
        }
    }
}
