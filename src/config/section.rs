//! Reads one table of the config: typed values out, faults collected, unknown keys found, the effective config written down.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use super::fault::{Fault, Faults};
use super::node::{Node, Origin, Table, Value};

/// A value of the config.
pub(crate) trait Setting: Sized {
    /// What would be right, as a remedy: `write a duration such as "250ms"`.
    const REMEDY: &'static str;

    /// Reads it; the error says what is wrong.
    fn read(node: &Node) -> Result<Self, String>;

    /// As it is printed by `check`.
    fn show(&self) -> toml::Value;
}

/// What is shared while one config is read.
#[derive(Default)]
pub(crate) struct Reading {
    pub(crate) faults: RefCell<Faults>,
    effective: RefCell<toml::Table>,
}

impl Reading {
    pub(crate) fn fault(&self, origin: &Origin, key: &str, problem: impl Into<String>, remedy: impl Into<String>) {
        self.faults.borrow_mut().push(Fault {
            origin: origin.clone(),
            key: key.to_owned(),
            // One line, whatever a library says.
            problem: problem.into().lines().map(str::trim).collect::<Vec<_>>().join(" "),
            remedy: remedy.into(),
        });
    }

    fn write_down(&self, path: &[String], key: &str, value: toml::Value) {
        let mut table = self.effective.borrow_mut();
        let mut at: &mut toml::Table = &mut table;
        for part in path {
            let below = at.entry(part.clone()).or_insert_with(|| toml::Value::Table(toml::Table::new()));
            let toml::Value::Table(next) = below else { return };
            at = next;
        }
        at.insert(key.to_owned(), value);
    }

    pub(crate) fn effective(&self) -> toml::Table {
        self.effective.borrow().clone()
    }
}

/// One table being read. [`finish`](Self::finish) reports what nobody asked for.
pub(crate) struct Section<'a> {
    reading: &'a Reading,
    table: &'a Table,
    origin: &'a Origin,
    path: Vec<String>,
    known: RefCell<BTreeSet<&'static str>>,
}

static EMPTY: Table = BTreeMap::new();

impl<'a> Section<'a> {
    pub(crate) fn root(reading: &'a Reading, table: &'a Table, origin: &'a Origin) -> Self {
        Self { reading, table, origin, path: Vec::new(), known: RefCell::default() }
    }

    fn at(&self, table: &'a Table, origin: &'a Origin, key: &str) -> Self {
        let mut path = self.path.clone();
        path.push(key.to_owned());
        Section { reading: self.reading, table, origin, path, known: RefCell::default() }
    }

    /// Dotted path of a key of this table.
    pub(crate) fn path(&self, key: &str) -> String {
        let mut path = self.path.join(".");
        if !key.is_empty() {
            if !path.is_empty() {
                path.push('.');
            }
            path.push_str(key);
        }
        path
    }

    pub(crate) fn reading(&self) -> &'a Reading {
        self.reading
    }

    /// The node under a key, marked as known.
    pub(crate) fn node(&self, key: &'static str) -> Option<&'a Node> {
        self.known.borrow_mut().insert(key);
        self.table.get(key)
    }

    pub(crate) fn has(&self, key: &'static str) -> bool {
        self.node(key).is_some()
    }

    /// Reports a fault at a key (or at a path below it), or as near to it as there is something.
    pub(crate) fn fault(&self, key: &str, problem: impl Into<String>, remedy: impl Into<String>) {
        let origin = match self.table.get(key) {
            Some(node) => &node.origin,
            None => self.nearest(key.split('.')),
        };
        self.reading.fault(origin, &self.path(key), problem, remedy);
    }

    /// Where the last part of a path stands that is there at all.
    fn nearest<'p>(&self, path: impl Iterator<Item = &'p str>) -> &'a Origin {
        let (mut origin, mut table) = (self.origin, Some(self.table));
        for part in path {
            let node = table.and_then(|table| table.get(part));
            origin = node.map_or(origin, |node| &node.origin);
            table = node.and_then(Node::table);
        }
        origin
    }

    /// A value, if it is there.
    pub(crate) fn get<T: Setting>(&self, key: &'static str) -> Option<T> {
        let value = self.read_node::<T>(key, self.node(key)?)?;
        self.reading.write_down(&self.path, key, value.show());
        Some(value)
    }

    fn read_node<T: Setting>(&self, key: &str, node: &Node) -> Option<T> {
        match T::read(node) {
            Ok(value) => Some(value),
            Err(problem) => {
                self.reading.fault(&node.origin, &self.path(key), problem, T::REMEDY);
                None
            }
        }
    }

    /// A value, or what it is unless said otherwise.
    pub(crate) fn or<T: Setting>(&self, key: &'static str, default: T) -> T {
        if self.has(key) {
            self.get(key).unwrap_or(default)
        } else {
            self.reading.write_down(&self.path, key, default.show());
            default
        }
    }

    /// A value that must be there.
    pub(crate) fn need<T: Setting>(&self, key: &'static str) -> Option<T> {
        if !self.has(key) {
            self.fault(key, "is missing", T::REMEDY);
        }
        self.get(key)
    }

    /// A list, or what it is unless said otherwise.
    pub(crate) fn list_or<T: Setting>(&self, key: &'static str, default: impl FnOnce() -> Vec<T>) -> Vec<T> {
        self.list(key).unwrap_or_else(|| {
            let items = default();
            self.show(key, items.iter().map(Setting::show).collect::<Vec<_>>());
            items
        })
    }

    /// A list; a single value is a list of one.
    pub(crate) fn list<T: Setting>(&self, key: &'static str) -> Option<Vec<T>> {
        let node = self.node(key)?;
        let items = match &node.value {
            Value::Array(items) => items.iter().filter_map(|item| self.read_node(key, item)).collect(),
            Value::Raw(text) => text
                .split(',')
                .map(|part| Node { value: Value::Raw(part.trim().to_owned()), origin: node.origin.clone() })
                .filter_map(|item| self.read_node(key, &item))
                .collect(),
            _ => self.read_node(key, node).into_iter().collect::<Vec<T>>(),
        };
        self.reading.write_down(&self.path, key, toml::Value::Array(items.iter().map(Setting::show).collect()));
        Some(items)
    }

    /// A table below this one, if it is there.
    pub(crate) fn section(&self, key: &'static str) -> Option<Section<'a>> {
        let node = self.node(key)?;
        let Some(table) = node.table() else {
            self.fault(key, format!("is {}, not a table", node.describe()), format!("write [{}]", self.path(key)));
            return None;
        };
        Some(self.at(table, &node.origin, key))
    }

    /// A table below this one, empty if it is not there.
    pub(crate) fn section_or_empty(&self, key: &'static str) -> Section<'a> {
        self.section(key).unwrap_or_else(|| self.at(&EMPTY, self.origin, key))
    }

    /// The tables below a table of names (`[routes.NAME]`).
    pub(crate) fn named(&self, key: &'static str) -> Vec<(&'a str, Section<'a>)> {
        self.section(key).map(|section| section.children()).unwrap_or_default()
    }

    /// Every key of this table as a table.
    pub(crate) fn children(&self) -> Vec<(&'a str, Section<'a>)> {
        let mut found = Vec::new();
        for (name, node) in self.table {
            match node.table() {
                Some(table) => found.push((name.as_str(), self.at(table, &node.origin, name))),
                None => self.fault(name, format!("is {}, not a table", node.describe()), "write a table here"),
            }
        }
        found
    }

    /// The keys of this table that hold tables.
    pub(crate) fn tables(&self) -> Vec<(&'a str, Section<'a>)> {
        let tables =
            self.table.iter().filter_map(|(name, node)| Some((name.as_str(), self.at(node.table()?, &node.origin, name))));
        tables.collect()
    }

    /// Marks keys as known that only some variants read.
    pub(crate) fn known(&self, keys: &[&'static str]) {
        self.known.borrow_mut().extend(keys);
    }

    /// Every key of this table with its node.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&'a str, &'a Node)> + use<'a> {
        self.table.iter().map(|(key, node)| (key.as_str(), node))
    }

    /// Every key of this table as one kind of value.
    pub(crate) fn map<T: Setting>(&self) -> BTreeMap<String, T> {
        let entries = self.entries().filter_map(|(key, node)| Some((key.to_owned(), self.read_node::<T>(key, node)?)));
        let map: BTreeMap<String, T> = entries.collect();
        for (key, value) in &map {
            self.reading.write_down(&self.path, key, value.show());
        }
        map
    }

    /// A part of the contract that is not built yet: its keys are a clear fault, not silence.
    pub(crate) fn not_built(&self, key: &'static str, what: &str) {
        if self.has(key) {
            self.fault(key, format!("{what} not built yet"), "remove it");
        }
    }

    /// Prints a value in the effective config that was not read with [`get`](Self::get).
    pub(crate) fn show(&self, key: &str, value: impl Into<toml::Value>) {
        self.reading.write_down(&self.path, key, value.into());
    }

    /// The table as it was written.
    pub(crate) fn table(&self) -> &'a Table {
        self.table
    }

    /// A value, without marking it as known.
    pub(crate) fn peek(&self, key: &str) -> Option<&'a Node> {
        self.table.get(key)
    }

    /// Reads another table in this one's place (what was written, with a preset merged below it), and finishes it.
    pub(crate) fn over<T>(&self, table: &Table, read: impl FnOnce(&Section<'_>) -> T) -> T {
        let section =
            Section { reading: self.reading, table, origin: self.origin, path: self.path.clone(), known: RefCell::default() };
        let value = read(&section);
        section.finish();
        value
    }

    /// As [`fault`](Self::fault), for a path with names in it that may hold dots.
    pub(crate) fn fault_in(&self, path: &[&str], problem: String, remedy: impl Into<String>) {
        self.reading.fault(self.nearest(path.iter().copied()), &self.path(&path.join(".")), problem, remedy);
    }

    /// Reports every key that nobody asked for.
    pub(crate) fn finish(self) {
        let known = self.known.borrow();
        for key in self.table.keys().filter(|key| !known.contains(key.as_str())) {
            // Of two as near, the one with the same letters: `mni` is `min`, not `max`.
            let far = |known: &&&str| (distance(known, key), letters(known) != letters(key));
            let near = known.iter().filter(|known| far(known).0 <= 2).min_by_key(far);
            let remedy = near.map_or_else(
                || format!("known here: {}", known.iter().copied().collect::<Vec<_>>().join(", ")),
                |near| format!("did you mean `{near}`?"),
            );
            self.fault(key, "unknown key", remedy);
        }
    }
}

fn letters(text: &str) -> Vec<char> {
    let mut letters: Vec<char> = text.chars().collect();
    letters.sort_unstable();
    letters
}

/// Levenshtein distance, for "did you mean".
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.chars().count()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        let mut left = i + 1;
        for (cell, y) in row.iter_mut().skip(1).zip(b.chars()) {
            let next = if x == y { corner } else { 1 + corner.min(left).min(*cell) };
            corner = *cell;
            *cell = next;
            left = next;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_edits() {
        assert_eq!(distance("listen", "listen"), 0);
        assert_eq!(distance("listen", "lisen"), 1);
        assert_eq!(distance("brust", "burst"), 2);
        assert_eq!(distance("a", "xyz"), 3);
    }
}
