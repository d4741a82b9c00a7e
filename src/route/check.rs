//! What can be wrong with a route although each key by itself is right.

use std::time::Duration;

use http::Method;

use super::Route;
use crate::config::section::Section;
use crate::config::units::show_duration;
use crate::question::Value;
use crate::question::field::{Field, Place};
use crate::question::kind::Kind;

pub(crate) fn route(section: &Section<'_>, route: &Route) {
    budget(section, route);
    price(section, route);
    if route.expose.is_readable() {
        fields(section, route);
    }
    if route.cache.is_some() {
        terms(section, route);
        volatile(section, route);
        body(section, route);
    }
    unordered(section, route);
    rest(section, route);
    limits(section, route);
    writes(section, route);
}

fn budget(section: &Section<'_>, route: &Route) {
    if route.provider.is_paid() && route.budget.is_none() && route.provider.budget.is_none() {
        section.fault(
            "budget",
            format!("calls of {} cost money and nothing caps them", route.provider.name),
            "write budget = { day = \"20 USD\", zone = \"UTC\" } here or at the provider, or \"none\" to say aloud that there is no cap",
        );
    }
}

fn price(section: &Section<'_>, route: &Route) {
    let Some(price) = &route.provider.price else { return };
    if let Some(missing) = price.missing(&route.priced_by) {
        let problem = format!("the price of {} depends on the question, and nothing says how", route.provider.name);
        section.fault("priced_by", problem, format!("write priced_by = {{ {missing} }}"));
    }
    if let Some(most) = route.max_price {
        let least = price.least();
        if most.currency != least.currency || least.micros > most.micros {
            section.fault("max_price", format!("one call costs {least} and more"), "raise it, or correct the price");
        }
    }
}

fn fields(section: &Section<'_>, route: &Route) {
    for field in &route.fields {
        if let Place::Path(name) = &field.place
            && route.expose.position(name).is_none()
        {
            section.fault(
                &format!("question.{}", field.name),
                format!("the exposed path {} has no {{{name}}}", route.expose.path()),
                format!("write {{{name}}} into expose"),
            );
        }
    }
    for segment in &route.expose.segments {
        if let super::pattern::Segment::Field(name) = segment
            && !route.fields.iter().any(|field| field.place == Place::Path(name.clone()))
        {
            section.fault(
                "expose",
                format!("{{{name}}} is no field of the question"),
                format!("add {name} = {{ in = \"path\", .. }}"),
            );
        }
    }
    for (index, field) in route.fields.iter().enumerate() {
        if let Some(other) = route.fields.iter().take(index).find(|other| other.place.meets(&field.place)) {
            section.fault(
                &format!("question.{}", field.name),
                format!("stands where {} does", other.name),
                "give it a place of its own, or remove one of them",
            );
        }
    }
    let forms = route.fields.iter().any(|field| matches!(field.place, Place::Form(_)));
    if forms && route.reads_json() {
        section.fault("question", "a body is a form or JSON, not both", "put all body fields into one of them");
    }
    if route.reads_body() && route.expose.method == Method::GET {
        section.fault("expose", "a GET has no body to read fields from", "expose it as POST, or move the fields to the query");
    }
    if route.per_caller && route.callers.as_ref().is_some_and(std::collections::BTreeSet::is_empty) {
        section.fault("callers", "nobody may call this route", "name a caller, or remove the key");
    }
}

fn terms(section: &Section<'_>, route: &Route) {
    let (Some(cache), Some(terms)) = (&route.cache, &route.provider.terms) else { return };
    if route.provider.terms_override.is_some() {
        return;
    }
    let stale = cache.stale_if_error.max(cache.stale_while_revalidate);
    for (key, lifetime) in cache.lifetimes() {
        let Some(lifetime) = lifetime else { continue };
        let longest = lifetime.saturating_add(stale);
        if longest > terms.max_store {
            let allowed = if terms.max_store == Duration::ZERO {
                "the provider's terms let no answer be kept".to_owned()
            } else {
                format!("the provider's terms let an answer be kept for {}", show_duration(terms.max_store))
            };
            section.fault(
                &format!("cache.{key}"),
                format!("{allowed} ({}); this keeps it {} with its stale window", terms.source, show_duration(longest)),
                format!("shorten it, or write providers.{}.terms_override = \"what permits it, in words\"", route.provider.name),
            );
        }
    }
}

fn volatile(section: &Section<'_>, route: &Route) {
    // The least that every question says; what the caller writes does not matter.
    let something = |field: &Field| field.required.then(|| Value::plain("?".to_owned()));
    let least: Vec<_> = route.fields.iter().map(|field| field.default.clone().or_else(|| something(field))).collect();
    if let Some(place) = route.volatile.found(&route.template, &least) {
        section.fault(
            "cache",
            format!("every answer depends on the moment it was asked ({place} is sent), so none may be kept"),
            format!("remove cache, or do not send {place}"),
        );
    }
}

fn body(section: &Section<'_>, route: &Route) {
    if route.expose.method == Method::POST && !route.reads_body() {
        section.fault(
            "cache",
            "the body of this POST is not in the question, so different requests would share one answer",
            "describe the body in [question] (in = \"json\" or \"form\"), or remove cache",
        );
    }
}

fn unordered(section: &Section<'_>, route: &Route) {
    const SHAPE: &str = "add [reply], or remove unordered";
    for group in &route.unordered {
        let kinds: Vec<&Kind> = group.iter().filter_map(|index| route.fields.get(*index)).map(|field| &field.kind).collect();
        if kinds.len() < 2 || kinds.windows(2).any(|pair| matches!(pair, [a, b] if !alike(a, b))) {
            section.fault("unordered", "its fields are not of one type", "name two or more fields of the same type");
        }
    }
    let keyed = route.limits.iter().flat_map(|limits| &limits.by).map(|(index, name, _)| (*index, name.as_str(), "limits_by"));
    let subject = route.lockout.as_ref().and_then(|lockout| lockout.subject);
    let subject = subject.and_then(|index| Some((index, route.fields.get(index)?.name.as_str(), "lockout")));
    for (index, name, key) in keyed.chain(subject) {
        if route.unordered.iter().any(|group| group.contains(&index)) {
            section.fault(
                key,
                format!("{name} may change places with another field, so nothing can be counted by it"),
                "name a field that is not in unordered",
            );
        }
    }
    if !route.unordered.is_empty() && route.reply.is_none() {
        section.fault("unordered", "the provider's own body would be mirrored for one of the two orders", SHAPE);
    }
}

/// Of a read, what nobody has described would make every question one of its own.
fn rest(section: &Section<'_>, route: &Route) {
    let mut rests = route.fields.iter().filter(|field| field.kind == Kind::Rest);
    let (Some(rest), more) = (rests.next(), rests.next()) else { return };
    let at = |field: &Field| format!("question.{}", field.name);
    if let Some(more) = more {
        section.fault(&at(more), format!("{} takes the rest of the form already", rest.name), "remove one of them");
    }
    if route.writes.is_none() {
        section.fault(&at(rest), "only a write may take what nobody has described", "describe its fields, or add writes");
    }
    if route.template.json.is_some() {
        section.fault(&at(rest), "reaches nobody: what is sent is JSON", "remove send.json, or the field");
    }
}

/// Whether a value of one is a value of the other, but for its bounds.
fn alike(a: &Kind, b: &Kind) -> bool {
    match (a, b) {
        (Kind::Set { of: a, .. }, Kind::Set { of: b, .. }) | (Kind::List { of: a, .. }, Kind::List { of: b, .. }) => alike(a, b),
        (Kind::Enum { .. } | Kind::Code { .. }, _) => a == b,
        _ => a.name() == b.name(),
    }
}

fn limits(section: &Section<'_>, route: &Route) {
    let Some(limits) = &route.limits else { return };
    for (key, rule) in limits.rules() {
        if limits.cost > rule.burst {
            section.fault(
                key,
                format!("a request costs {} and the bucket holds {}: none would ever pass", limits.cost, rule.burst),
                "raise burst, or lower cost",
            );
        }
    }
}

fn writes(section: &Section<'_>, route: &Route) {
    if !section.has("writes") {
        if route.provider.idempotency.is_some() && route.template.method == Method::POST {
            let problem =
                "a POST to a provider that takes idempotency keys is a write: as a read it would be retried, and paid for again";
            section.fault("writes", problem, "write writes = {}: it is sent once for each Idempotency-Key");
        }
        return;
    }
    for (key, what) in
        [("cache", "a cache"), ("curated", "answers kept by hand"), ("refresh", "a cache, so there is nothing to refresh")]
    {
        if section.has(key) {
            section.fault(key, format!("a write is never answered from {what}"), format!("remove {key}"));
        }
    }
    if route.expose.is_readable() && route.expose.method == Method::GET {
        let remedy = "expose it as POST; the provider may still be sent a GET (send.method)";
        section.fault("expose", "a write behind GET would be sent by whoever follows a link", remedy);
    }
}
