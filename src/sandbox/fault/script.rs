//! Faults from a file: `[[fault]]` tables in TOML.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use super::Fault;

/// The faults of a script, checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Script {
    /// In the order they were written.
    pub faults: Vec<Fault>,
}

/// Why a script cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptError {
    /// The file.
    pub file: String,
    /// The line, from 1; 0 if it is about the file as a whole.
    pub line: usize,
    /// The key, as far as it is known.
    pub key: String,
    /// What is wrong and what would be right.
    pub what: String,
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.line > 0 {
            write!(f, ":{}", self.line)?;
        }
        if !self.key.is_empty() {
            write!(f, ": {}", self.key)?;
        }
        write!(f, ": {}", self.what)
    }
}

impl std::error::Error for ScriptError {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    fault: Vec<Spanned<Fault>>,
}

impl Script {
    /// Reads a script from a file.
    pub fn load(path: &Path) -> Result<Self, ScriptError> {
        let file = path.display().to_string();
        match std::fs::read_to_string(path) {
            Ok(text) => Self::parse(&file, &text),
            Err(wrong) => {
                let what = format!("cannot be read ({wrong}); name a TOML file with [[fault]] tables");
                Err(ScriptError { file, line: 0, key: String::new(), what })
            }
        }
    }

    /// Reads a script; `file` is what errors call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, ScriptError> {
        let error = |at: Option<usize>, key: Option<&str>, what: String| {
            let (line, found) = at.map_or((0, String::new()), |at| place(text, at, key));
            ScriptError { file: file.to_owned(), line, key: key.map_or(found, str::to_owned), what }
        };
        let read: File = toml::from_str(text)
            .map_err(|wrong| error(wrong.span().map(|span| span.start), None, wrong.message().replace('\n', "; ")))?;
        for fault in &read.fault {
            fault.get_ref().check().map_err(|wrong| error(Some(fault.span().start), Some(wrong.key), wrong.what))?;
        }
        Ok(Self { faults: read.fault.into_iter().map(Spanned::into_inner).collect() })
    }
}

/// The line of an offset and the key on it. With a key, its line in the table that begins at the offset.
fn place(text: &str, at: usize, key: Option<&str>) -> (usize, String) {
    let start = text.get(..at).unwrap_or_default().matches('\n').count();
    let lines = || text.lines().enumerate().skip(start);
    let named = |line: &str| line.split_once('=').map(|(name, _)| name.trim().trim_matches('"').to_owned());
    let same_table = lines().skip(1).take_while(|(_, line)| !line.trim_start().starts_with("[["));
    let of_key = key.and_then(|key| {
        let mut all = lines().take(1).chain(same_table);
        all.find(|(_, line)| named(line).is_some_and(|name| name == key || name.starts_with(&format!("{key}."))))
    });
    let (index, line) = of_key.or_else(|| lines().next()).unwrap_or((start, ""));
    (index.saturating_add(1), named(line).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn wrong(text: &str) -> String {
        Script::parse("faults.toml", text).unwrap_err().to_string()
    }

    #[test]
    fn a_script_says_the_same_as_the_control_port() {
        let text = r#"
            [[fault]]
            provider = "opencage"
            calls = "2.."
            status = 503
            body = { error = "no" }
            retry_after = "120"

            [[fault]]
            provider = "twilio"
            drip = { bytes = 1, every = "50ms" }
        "#;
        let script = Script::parse("faults.toml", text).unwrap();
        let first = json!({"provider": "opencage", "calls": "2..", "status": 503, "body": {"error": "no"}, "retry_after": "120"});
        assert_eq!(script.faults.len(), 2);
        assert_eq!(script.faults.first(), Some(&serde_json::from_value(first).unwrap()));
        assert_eq!(Script::parse("faults.toml", ""), Ok(Script::default()));
    }

    #[test]
    fn an_error_names_file_line_key_and_remedy() {
        let found = wrong("[[fault]]\nprovider = \"opencage\"\ncalls = \"x\"\nhang = true\n");
        assert_eq!(
            found,
            "faults.toml:3: calls: \"x\" names no calls; write [1, 2], \"3..\", \"2..4\" or \"all\" (the first call is 1)"
        );
        let found = wrong("[[fault]]\nhang = true\n[[fault]]\n# two ways to end\nclose = true\nreset = true\n");
        assert_eq!(found, "faults.toml:6: reset: a call ends in one way only; keep one of hang, close, reset and refuse");
        let found = wrong("[[fault]]\ndelay = \"soon\"\n");
        assert_eq!(found, "faults.toml:2: delay: \"soon\" is not a time; write \"400ms\", \"2s\" or \"1m\"");
        let found = wrong("[[fault]]\nstauts = 503\n");
        assert!(found.starts_with("faults.toml:2: stauts: unknown field `stauts`, expected one of `provider`"), "{found}");
        let found = Script::load(Path::new("/nowhere/faults.toml")).unwrap_err().to_string();
        assert!(found.starts_with("/nowhere/faults.toml: cannot be read"), "{found}");
    }
}
