//! What is wrong with a config: where, which key, what would be right. All of it at once.

use std::fmt;

use super::node::Origin;

/// One fault.
#[derive(Clone, Debug)]
pub(crate) struct Fault {
    pub(crate) origin: Origin,
    /// Dotted path of the key; empty for syntax.
    pub(crate) key: String,
    pub(crate) problem: String,
    pub(crate) remedy: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { origin, key, problem, remedy } = self;
        let (key, colon) = if key.is_empty() { ("", "") } else { (key.as_str(), ": ") };
        write!(f, "{origin}: {key}{colon}{problem}\n    remedy: {remedy}")
    }
}

/// Every fault of a config, in the order of the files.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<Fault>);

impl Faults {
    pub(crate) fn push(&mut self, fault: Fault) {
        self.0.push(fault);
    }

    /// Whether nothing is wrong.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many faults there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// In the order in which a reader meets them.
    pub(crate) fn sort(&mut self) {
        self.0.sort_by(|a, b| place(&a.origin).cmp(&place(&b.origin)));
    }
}

fn place(origin: &Origin) -> (u8, &str, usize, usize) {
    match origin {
        Origin::File { name, line, column } => (0, name, *line, *column),
        Origin::Env(name) => (1, name, 0, 0),
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for fault in &self.0 {
            writeln!(f, "{fault}")?;
        }
        let count = self.0.len();
        write!(f, "{count} fault{} in the config", if count == 1 { "" } else { "s" })
    }
}

impl std::error::Error for Faults {}
