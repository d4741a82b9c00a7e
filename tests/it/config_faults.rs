//! The commands that need no network, as processes: what `check` finds, what it prints, how each ends.

mod commands;
mod environment;
mod faults;
mod hooks;
mod reference;

use tempfile::TempDir;

use crate::support::command::{Ran, tollgate};

/// `check` on a text, as `t.toml`.
fn check(text: &str, environment: &[(&str, &str)]) -> Ran {
    tollgate(directory(text).path(), &["check", "-c", "t.toml"], environment)
}

fn directory(text: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("t.toml"), text).unwrap();
    dir
}

/// A config without faults: one paid provider, one route.
const GOOD: &str = r#"[store]
url = "memory:"
[callers.keys.web]
sha256 = "d3c77016f850f1e48f26342dab0c6adee48716ca1e89fdc123d500fc42272820"
[providers.opencage]
preset = "opencage"
key = "env:OPENCAGE_KEY"
price = "0.005 USD"
[routes.geocode]
provider = "opencage"
operation = "geocode"
budget = "none"
"#;

const KEY: [(&str, &str); 1] = [("OPENCAGE_KEY", "0123456789abcdef")];

/// The good config with some text in place of another.
fn with(from: &str, to: &str) -> String {
    assert!(GOOD.contains(from), "{from}");
    GOOD.replace(from, to)
}

/// The good config with lines behind it: of its route, unless they begin a table.
fn and(lines: &str) -> String {
    format!("{GOOD}{lines}\n")
}
