//! Settings of the store that may lose records, in words. Read at every connection: the one at the other end may be another.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use redis::aio::MultiplexedConnection;

mod writes;

/// What was found at the last connection.
pub(super) struct Report {
    /// Whether there are routes with paid writes.
    pub(super) writes: bool,
    found: Mutex<Vec<String>>,
}

impl Report {
    pub(super) fn new(writes: bool) -> Self {
        Self { writes, found: Mutex::default() }
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Keeps what was found, and says what is new.
    fn keep(&self, found: Vec<String>) {
        let mut known = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        for warning in found.iter().filter(|warning| !known.contains(warning)) {
            tracing::warn!("{warning}");
        }
        *known = found;
    }
}

/// Asks the store for its settings. A store that does not tell is no fault: many hosts allow no `CONFIG`.
pub(super) async fn read(report: &Report, connection: &mut MultiplexedConnection, timeout: Duration) {
    let mut command = redis::cmd("CONFIG");
    command.arg("GET").arg("maxmemory*").arg("append*").arg("save");
    let settings = tokio::time::timeout(timeout, command.query_async(connection)).await;
    report.keep(match settings {
        Ok(Ok(settings)) => warnings(&settings, report.writes),
        _ => vec![
            "the store does not tell its settings (CONFIG GET): see that it keeps records on disk (appendonly yes) and drops none \
             when it is full (maxmemory-policy noeviction)"
                .to_owned(),
        ],
    });
}

fn warnings(settings: &HashMap<String, String>, with_writes: bool) -> Vec<String> {
    let setting = |name| settings.get(name).map_or("", String::as_str);
    let mut warnings = Vec::new();
    let policy = if setting("maxmemory") == "0" { "noeviction" } else { setting("maxmemory-policy") };
    if policy.starts_with("allkeys") {
        warnings.push(format!(
            "the store drops records when it is full (maxmemory-policy {policy}): switches, purges, lockouts, and what was spent, so \
             that caps may be passed; set noeviction"
        ));
    } else if policy.starts_with("volatile") {
        warnings.push(format!(
            "the store drops lockouts and what was spent when it is full (maxmemory-policy {policy}): caps may be passed; set \
             noeviction"
        ));
    }
    if setting("appendonly") == "no" {
        warnings.push(if setting("save").is_empty() {
            "the store keeps nothing on disk (appendonly no, no save): a restart loses switches, purges and lockouts".to_owned()
        } else {
            "the store writes snapshots only (appendonly no): a crash loses switches, purges and lockouts since the last"
                .to_owned()
        });
    }
    let (log, save, sync) = (setting("appendonly"), setting("save"), setting("appendfsync"));
    warnings.extend(money(log, save, sync).map(str::to_owned));
    if with_writes {
        warnings.extend(writes::dropped(policy));
        warnings.extend(writes::lost(log, save, sync).map(str::to_owned));
    }
    warnings
}

/// What of money may be lost.
fn money(log: &str, save: &str, sync: &str) -> Option<&'static str> {
    match (log, sync) {
        ("no", _) if save.is_empty() => Some(
            "money is not kept on disk (appendonly no, no save): a restart of the store loses what every cap has used, the ledger \
             and the savings. Instances that outlive it pay nothing until the loss is accepted; if none does, caps begin at \
             nothing. Set appendonly yes",
        ),
        ("no", _) => Some(
            "money is on disk as of the last snapshot only (appendonly no): a crash of the store loses what was reserved, settled \
             and saved since, and nobody notices: as much may be spent above the caps. Set appendonly yes",
        ),
        ("yes", "no") => Some(
            "the system decides when money is on disk (appendfsync no): a crash of the store's machine loses what was reserved, \
             settled and saved in the last half minute or so, and nobody notices. Set appendfsync everysec, or always",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(maxmemory: &str, policy: &str, appendonly: &str, save: &str) -> Vec<String> {
        let settings = [("maxmemory", maxmemory), ("maxmemory-policy", policy), ("appendonly", appendonly), ("save", save)];
        warnings(&settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(), false)
    }

    #[test]
    fn what_may_lose_money_is_said_in_words() {
        for (policy, appendonly, save, words) in [
            ("allkeys-lru", "yes", "", "caps may be passed"),
            ("volatile-ttl", "yes", "", "caps may be passed"),
            ("noeviction", "no", "", "what every cap has used, the ledger and the savings"),
            ("noeviction", "no", "3600 1", "since, and nobody notices"),
        ] {
            let said = found("100", policy, appendonly, save).join("; ");
            assert!(said.contains(words), "{policy} {appendonly} {save}: {said}");
        }
        assert!(money("yes", "", "no").is_some_and(|said| said.contains("half minute")));
        assert_eq!((money("yes", "", "everysec"), money("yes", "", "always"), money("", "", "")), (None, None, None));
    }

    #[test]
    fn what_may_lose_records_is_said() {
        assert!(found("100", "noeviction", "yes", "").is_empty());
        assert!(found("0", "allkeys-lru", "yes", "3600 1").is_empty(), "never full");
        assert!(found("100", "allkeys-lru", "yes", "")[0].contains("switches"));
        assert!(found("100", "volatile-ttl", "yes", "")[0].contains("lockouts"));
        assert!(found("0", "noeviction", "no", "")[0].contains("nothing on disk"));
        assert!(found("0", "noeviction", "no", "3600 1")[0].contains("snapshots only"));
    }
}
