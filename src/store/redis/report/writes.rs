//! What of paid writes may be lost, where there are any: a record that is lost is a write that may be sent twice.

/// By a store that is full.
pub(super) fn dropped(policy: &str) -> Option<String> {
    let what = match policy {
        _ if policy.starts_with("allkeys") => "paid writes it has records of, answered or not",
        // What is not settled has no end, and stays.
        _ if policy.starts_with("volatile") => "the answers to paid writes",
        _ => return None,
    };
    Some(format!(
        "the store drops {what}, when it is full (maxmemory-policy {policy}): whoever asks again has them sent again; set noeviction"
    ))
}

/// By its end.
pub(super) fn lost(log: &str, save: &str, sync: &str) -> Option<&'static str> {
    match (log, sync) {
        ("no", _) if save.is_empty() => Some(
            "no persistence with write routes (appendonly no, no save): after a restart of the store nobody knows what was sent. \
             Instances that outlive it send nothing until the loss is accepted; then, or if none does, a paid write may be sent \
             twice. Set appendonly yes",
        ),
        ("no", _) => Some(
            "paid writes are on disk as of the last snapshot only (appendonly no): after a crash of the store what was sent since \
             may be sent twice, and nobody notices. Set appendonly yes",
        ),
        ("yes", "no") => Some(
            "the system decides when paid writes are on disk (appendfsync no): after a crash of the store's machine what was sent in \
             the last half minute or so may be sent twice. Set appendfsync always",
        ),
        ("yes", "everysec") => Some(
            "paid writes are on disk a second late (appendfsync everysec): after a crash of the store what was sent in its last second \
             or two may be sent twice, unless a copy takes over. Set appendfsync always",
        ),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_sent_twice_is_said_in_words() {
        assert!(dropped("allkeys-lru").is_some_and(|said| said.contains("answered or not") && said.contains("sent again")));
        assert!(dropped("volatile-ttl").is_some_and(|said| said.contains("the answers to paid writes")));
        assert_eq!((dropped("noeviction"), dropped("")), (None, None));
        assert!(lost("no", "", "everysec").is_some_and(|said| said.starts_with("no persistence with write routes")));
        let late =
            [("no", "3600 1", "last snapshot", "everysec"), ("yes", "", "half minute", "no"), ("yes", "", "second", "everysec")];
        for (log, save, words, sync) in late {
            let said = lost(log, save, sync).unwrap();
            assert!(said.contains("may be sent twice") && said.contains(words), "{said}");
        }
        assert_eq!((lost("yes", "", "always"), lost("", "", "")), (None, None));
    }
}
