//! Lays a route over its operation: the one that it names, or the one whose request it sends.
//!
//! Whoever describes the request themselves still gets what is known of it: what its answers mean, what makes each of them one of
//! its own, and that it is a write. A write that is taken for a read is retried, and paid for again.

use super::node::{Node, Origin, Table, Value, merge};
use super::section::Section;
use crate::provider::Provider;

/// A route's table with its operation merged below.
pub(super) fn route(written: &Section<'_>, provider: &Provider) -> Option<Table> {
    let mut table = match written.peek("operation") {
        None => inferred(written.table(), &provider.operations),
        Some(node) => match node.text().and_then(|name| provider.operations.get(name)).and_then(Node::table) {
            Some(operation) => operation.clone(),
            None => {
                let known: Vec<&str> = provider.operations.keys().map(String::as_str).collect();
                let remedy = if known.is_empty() {
                    "the provider has no preset: describe the route by `send` and [question]".to_owned()
                } else {
                    format!("write one of: {}", known.join(", "))
                };
                written.fault("operation", "the provider has no such operation", remedy);
                return None;
            }
        },
    };
    // Lifetimes are one decision. Whoever states some, and no window for stale answers, wants none: what the preset has beside
    // them must not come back. One key from the environment still changes one key.
    if written.peek("cache").is_some_and(|node| matches!(node.origin, Origin::File { .. })) {
        table.remove("cache");
    }
    let writes = table.get("writes").cloned();
    if !written.table().contains_key("one_of") {
        left(&mut table, written.table());
    }
    merge(&mut table, written.table());
    if let Some(writes) = writes.filter(|_| !table.contains_key("writes")) {
        let problem = format!("this request of {} is a write: as a read it would be retried, and paid for again", provider.name);
        written.fault("writes", problem, "remove it; writes = { key = \"optional\" } lets callers send without a key");
        // Nothing else is wrong with a write because of that.
        table.insert("writes".to_owned(), writes);
    }
    Some(table)
}

/// Of an operation's alternatives, what is left on a route: not those with a field that it takes away, and without what it always
/// sends. Where none is left, what was wrong is said of them.
fn left(operation: &mut Table, route: &Table) {
    let stands = |table: &str, name: &str| route.get(table).and_then(Node::table).and_then(|table| table.get(name));
    let removed = |name: &str| matches!(stands("question", name), Some(Node { value: Value::Bool(false), .. }));
    let pinned = |name: &str| stands("pinned", name).is_some();
    let says = |node: &Node, rule: &dyn Fn(&str) -> bool| node.text().is_some_and(rule);
    let Some(Node { value: Value::Array(groups), .. }) = operation.get_mut("one_of") else { return };
    let mut kept = groups.clone();
    kept.retain(|group| !matches!(&group.value, Value::Array(items) if items.iter().any(|item| says(item, &removed))));
    for group in &mut kept {
        if let Value::Array(items) = &mut group.value {
            items.retain(|item| !says(item, &pinned));
        }
    }
    if kept.iter().any(|group| matches!(&group.value, Value::Array(items) if items.is_empty())) {
        operation.remove("one_of");
    } else if !kept.is_empty() {
        *groups = kept;
    }
}

/// What is known of the request that a route sends without a name for it.
fn inferred(route: &Table, operations: &Table) -> Table {
    let Some(request) = Request::of(route) else { return Table::new() };
    let operations = || operations.values().filter_map(|node| Some((Request::of(node.table()?)?, node.table()?)));
    let same = operations().find(|(operation, _)| request.is(operation)).map(|(_, table)| table);
    // A field in the path may be anything: what can be a write is one.
    let write = operations().filter(|(operation, _)| request.may_be(operation)).find_map(|(_, table)| table.get("writes"));
    let known = |key: &str| Some((key.to_owned(), same?.get(key)?.clone()));
    let writes = write.map(|writes| ("writes".to_owned(), writes.clone()));
    ["outcomes", "volatile"].into_iter().filter_map(known).chain(writes).collect()
}

/// Method and path that are sent: what `send` does not say is as it is exposed.
struct Request<'a> {
    method: &'a str,
    path: &'a str,
}

impl<'a> Request<'a> {
    fn of(table: &'a Table) -> Option<Self> {
        let send = table.get("send").and_then(Node::table);
        let stated = |key| send.and_then(|send| send.get(key)).and_then(Node::text);
        let exposed = table.get("expose").and_then(Node::text).and_then(|expose| expose.split_once(' '));
        let method = stated("method").or(exposed.map(|(method, _)| method)).unwrap_or("GET");
        Some(Self { method, path: stated("path").or(exposed.map(|(_, path)| path.trim()))? })
    }

    /// Whether all that is sent is a request of an operation, which may have fields in its path.
    fn is(&self, operation: &Self) -> bool {
        self.meets(operation, |mine, theirs| mine == theirs || is_field(theirs))
    }

    fn may_be(&self, operation: &Self) -> bool {
        self.meets(operation, |mine, theirs| mine == theirs || is_field(theirs) || is_field(mine))
    }

    fn meets(&self, operation: &Self, alike: impl Fn(&str, &str) -> bool) -> bool {
        let parts = |request: &Self| request.path.split('/').count();
        self.method == operation.method
            && parts(self) == parts(operation)
            && self.path.split('/').zip(operation.path.split('/')).all(|(mine, theirs)| alike(mine, theirs))
    }
}

fn is_field(segment: &str) -> bool {
    segment.contains('{')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::fault::Faults;
    use crate::provider::preset;

    fn keys(name: &str, route: &str) -> Vec<String> {
        let mut faults = Faults::default();
        let route = super::super::node::parse("t.toml", route, &mut faults);
        let (_, operations) = preset::find(name).unwrap();
        inferred(&route, &operations).into_keys().collect()
    }

    #[test]
    fn a_request_is_known_however_it_is_described() {
        let known = ["outcomes", "writes"];
        for route in [
            "send = { method = \"POST\", path = \"/v1/payment_intents\" }",
            "expose = \"POST /pay\"\nsend = { path = \"/v1/payment_intents\" }",
            "expose = \"POST /v1/payment_intents\"",
            "expose = \"GET /pay\"\nsend = { method = \"POST\", path = \"/v1/payment_intents\" }",
        ] {
            assert_eq!(keys("stripe", route), known, "{route}");
        }
        for account in ["{sid}", "AC1", "{AccountSid}"] {
            let path = format!("/2010-04-01/Accounts/{account}/Messages.json");
            assert_eq!(keys("twilio", &format!("send = {{ method = \"POST\", path = \"{path}\" }}")), known, "{path}");
        }
    }

    #[test]
    fn what_can_be_a_write_is_one_and_nothing_else_is() {
        assert_eq!(keys("stripe", "expose = \"POST /v1/{what}\""), ["writes"]);
        for route in [
            "expose = \"GET /v1/payment_intents\"",
            "expose = \"POST /v1/payment_intents/pi_1\"",
            "expose = \"POST /v1/refunds\"",
            "expose = \"POST /v1/payment_intents\"\nsend = { method = \"GET\" }",
            "coalesce = true",
        ] {
            assert_eq!(keys("stripe", route), [""; 0], "{route}");
        }
    }
}
