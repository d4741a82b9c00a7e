//! Reads the file and lays the environment over it: `TOLLGATE__SECTION__KEY`, names lower-cased, `-` written `_`.

use std::ffi::OsString;
use std::path::Path;

use super::fault::{Fault, Faults};
use super::node::{self, Node, Origin, Table, Value};

pub(super) fn file(path: &Path) -> Result<Table, Faults> {
    let name = path.display().to_string();
    let source = std::fs::read_to_string(path).map_err(|error| {
        let mut faults = Faults::default();
        faults.push(Fault {
            origin: Origin::File { name: name.as_str().into(), line: 1, column: 1 },
            key: String::new(),
            problem: format!("cannot be read: {error}"),
            remedy: "name a config file with -c FILE or TOLLGATE_CONFIG".into(),
        });
        faults
    })?;
    text(&name, &source, &environment())
}

pub(super) fn text(name: &str, source: &str, environment: &[(String, Value)]) -> Result<Table, Faults> {
    let mut faults = Faults::default();
    let mut table = node::parse(name, source, &mut faults);
    for (variable, value) in environment {
        let Some(key) = variable.strip_prefix(PREFIX) else { continue };
        let parts: Vec<String> = key.split("__").map(str::to_lowercase).collect();
        let origin = Origin::Env(variable.as_str().into());
        lay(&mut table, &parts, &structured(value, &origin), &origin);
    }
    if faults.is_empty() { Ok(table) } else { Err(faults) }
}

const PREFIX: &str = "TOLLGATE__";

/// What the environment says, in the order of the variables' names.
fn environment() -> Vec<(String, Value)> {
    let ours = |(name, value): (OsString, OsString)| {
        let name = name.into_string().ok().filter(|name| name.starts_with(PREFIX))?;
        Some((name, value.into_string().map_or_else(|_| Value::Other("bytes that are no text".to_owned()), Value::Raw)))
    };
    let mut found: Vec<(String, Value)> = std::env::vars_os().filter_map(ours).collect();
    found.sort_by(|(a, _), (b, _)| a.cmp(b));
    found
}

/// A list or a table may be written as in the file. What only looks like one, as `[::1]:80` does, is a text.
fn structured(value: &Value, origin: &Origin) -> Value {
    let Value::Raw(text) = value else { return value.clone() };
    if !text.trim_start().starts_with(['[', '{']) {
        return value.clone();
    }
    let mut faults = Faults::default();
    let mut table = node::parse("", &format!("value = {text}"), &mut faults);
    match table.remove("value") {
        Some(mut parsed) if faults.is_empty() && table.is_empty() => {
            parsed.move_to(origin);
            parsed.value
        }
        _ => value.clone(),
    }
}

/// Puts one value into the tree. A part names the key that is there and reads the same, else a new one.
fn lay(table: &mut Table, parts: &[String], value: &Value, origin: &Origin) {
    let Some((first, rest)) = parts.split_first() else { return };
    let key = table.keys().find(|key| key.to_lowercase().replace('-', "_") == *first).cloned();
    let key = key.unwrap_or_else(|| first.clone());
    if rest.is_empty() {
        table.insert(key, Node { value: value.clone(), origin: origin.clone() });
        return;
    }
    let below = table.entry(key).or_insert_with(|| Node { value: Table::new().into(), origin: origin.clone() });
    if !matches!(below.value, Value::Table(_)) {
        *below = Node { value: Table::new().into(), origin: origin.clone() };
    }
    if let Value::Table(table) = &mut below.value {
        lay(table, rest, value, origin);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_lies_over_the_file() {
        let source = "[providers.google-routes]\nprice = \"1 USD\"\n[server]\ndrain = \"1s\"\n";
        let environment = [("TOLLGATE__PROVIDERS__GOOGLE_ROUTES__PRICE", "2 USD"), ("TOLLGATE__SERVER__MAX_HEAD", "64KiB")];
        let environment = environment.map(|(name, value)| (name.to_owned(), Value::Raw(value.to_owned())));
        let table = text("t.toml", source, &environment).unwrap();
        let provider = table["providers"].table().unwrap()["google-routes"].table().unwrap();
        assert_eq!(provider["price"].text(), Some("2 USD"));
        assert_eq!(provider["price"].origin.to_string(), "environment TOLLGATE__PROVIDERS__GOOGLE_ROUTES__PRICE");
        assert_eq!(table["server"].table().unwrap().len(), 2);
    }
}
