//! A config tree that remembers where every value was written, so that a fault found late still names file and line.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, Faults};

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A file, with line and column from 1.
    File { name: Arc<str>, line: usize, column: usize },
    /// An environment variable.
    Env(Arc<str>),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { name, line, column } => write!(f, "{name}:{line}:{column}"),
            Self::Env(name) => write!(f, "environment {name}"),
        }
    }
}

/// One value of the tree.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

pub(crate) type Table = BTreeMap<String, Node>;

#[derive(Clone, Debug)]
pub(crate) enum Value {
    String(String),
    Integer(i64),
    /// A number TOML takes and no setting of ours does: kept as its text, for the fault.
    Other(String),
    Bool(bool),
    Array(Vec<Node>),
    Table(Table),
    /// From the environment: typed by whoever reads it.
    Raw(String),
}

impl Node {
    pub(crate) fn table(&self) -> Option<&Table> {
        if let Value::Table(table) = &self.value { Some(table) } else { None }
    }

    /// The text of a string, or of a value from the environment.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) | Value::Raw(text) => Some(text),
            _ => None,
        }
    }

    /// What stands here, for a fault: `the number 5`.
    pub(crate) fn describe(&self) -> String {
        match &self.value {
            Value::String(text) | Value::Raw(text) => format!("{text:?}"),
            Value::Integer(number) => format!("the number {number}"),
            Value::Other(text) => text.clone(),
            Value::Bool(value) => value.to_string(),
            Value::Array(_) => "a list".into(),
            Value::Table(_) => "a table".into(),
        }
    }

    /// Says of it, and of all below it, that it was written elsewhere.
    pub(crate) fn move_to(&mut self, origin: &Origin) {
        self.origin = origin.clone();
        match &mut self.value {
            Value::Array(items) => items.iter_mut().for_each(|item| item.move_to(origin)),
            Value::Table(table) => table.values_mut().for_each(|node| node.move_to(origin)),
            _ => {}
        }
    }

    /// As JSON, for templates and fixed bodies.
    pub(crate) fn json(&self) -> serde_json::Value {
        match &self.value {
            Value::String(text) | Value::Raw(text) => serde_json::Value::String(text.clone()),
            Value::Integer(number) => (*number).into(),
            Value::Other(text) => serde_json::from_str(text).unwrap_or_else(|_| text.clone().into()),
            Value::Bool(value) => (*value).into(),
            Value::Array(items) => items.iter().map(Self::json).collect(),
            Value::Table(table) => table.iter().map(|(key, node)| (key.clone(), node.json())).collect(),
        }
    }
}

/// Parses one file. Every syntax fault is reported; what could be read is returned beside them.
pub(crate) fn parse(name: &str, source: &str, faults: &mut Faults) -> Table {
    let file = File { name: name.into(), lines: line_starts(source) };
    let (table, errors) = DeTable::parse_recoverable(source);
    for error in errors {
        let at = error.span().map_or(0, |span| span.start);
        faults.push(Fault {
            origin: file.origin(at),
            key: String::new(),
            problem: error.message().trim().replace('\n', " "),
            remedy: "correct the TOML syntax".into(),
        });
    }
    file.table(table.get_ref())
}

struct File {
    name: Arc<str>,
    lines: Vec<usize>,
}

impl File {
    fn origin(&self, offset: usize) -> Origin {
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or_default();
        Origin::File { name: Arc::clone(&self.name), line, column: offset.saturating_sub(start) + 1 }
    }

    fn table(&self, table: &DeTable<'_>) -> Table {
        table
            .iter()
            .map(|(key, value)| {
                let mut node = self.node(value);
                // A key is where a reader looks; the value of `[a.b]` has no place of its own.
                node.origin = self.origin(key.span().start);
                (key.get_ref().to_string(), node)
            })
            .collect()
    }

    fn node(&self, value: &Spanned<DeValue<'_>>) -> Node {
        let typed = match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .map_or_else(|_| Value::Other(number.as_str().into()), Value::Integer),
            DeValue::Float(number) => Value::Other(number.as_str().into()),
            DeValue::Boolean(value) => Value::Bool(*value),
            DeValue::Datetime(at) => Value::Other(at.to_string()),
            DeValue::Array(items) => Value::Array(items.iter().map(|item| self.node(item)).collect()),
            DeValue::Table(table) => Value::Table(self.table(table)),
        };
        Node { value: typed, origin: self.origin(value.span().start) }
    }
}

fn line_starts(source: &str) -> Vec<usize> {
    std::iter::once(0).chain(source.match_indices('\n').map(|(at, _)| at + 1)).collect()
}

/// Lays `over` on `base`, key by key; `false` over a table removes it, lists are replaced.
pub(crate) fn merge(base: &mut Table, over: &Table) {
    for (key, node) in over {
        match (base.get_mut(key), &node.value) {
            (Some(Node { value: Value::Table(_), .. }), Value::Bool(false)) => {
                base.remove(key);
            }
            (Some(below), Value::Table(above)) if !replaces(above) => match &mut below.value {
                Value::Table(table) => {
                    merge(table, above);
                    below.origin = node.origin.clone();
                }
                _ => *below = node.clone(),
            },
            _ => {
                base.insert(key.clone(), node.clone());
            }
        }
    }
}

/// A field that states its own type, or a price of another form, is a new one, not a change of the one below.
fn replaces(table: &Table) -> bool {
    ["type", "units", "table"].iter().any(|key| table.contains_key(*key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(source: &str) -> Table {
        let mut faults = Faults::default();
        let table = parse("t.toml", source, &mut faults);
        assert!(faults.is_empty(), "{faults}");
        table
    }

    #[test]
    fn a_value_remembers_its_line() {
        let table = read("[server]\nlisten = \"x\"\n\n  [server.deep]\n  key = 5\n");
        let server = table["server"].table().unwrap();
        assert_eq!(server["listen"].origin.to_string(), "t.toml:2:1");
        assert_eq!(server["deep"].table().unwrap()["key"].origin.to_string(), "t.toml:5:3");
    }

    #[test]
    fn every_syntax_fault_is_reported() {
        let mut faults = Faults::default();
        parse("t.toml", "a = \nb = 1\nc = [1,\n", &mut faults);
        assert!(faults.len() >= 2, "{faults}");
    }

    #[test]
    fn merging_goes_key_by_key_and_false_removes() {
        let mut base = read("q = { type = \"text\", min = 1, max = 9 }\nlang = { type = \"language\" }\nn = 1\n");
        merge(&mut base, &read("q = { max = 5 }\nlang = false\nn = 2\n"));
        let q = base["q"].table().unwrap();
        assert!(matches!(q["max"].value, Value::Integer(5)) && q.contains_key("min"));
        assert!(!base.contains_key("lang"));
        merge(&mut base, &read("q = { type = \"bool\" }\n"));
        assert_eq!(base["q"].table().unwrap().len(), 1);
    }
}
