//! `config/tollgate.toml`: works as it is, and states the defaults that are.

use std::path::Path;

use toml::{Table, Value};

use super::{GOOD, KEY, check, tollgate};

const SECRETS: [(&str, &str); 3] =
    [("TOLLGATE_ADMIN_TOKEN", "admin-secret"), ("OPENCAGE_KEY", "provider-secret"), ("GOOGLE_MAPS_API_KEY", "google-secret")];

fn effective(out: &str) -> Table {
    toml::from_str(out).unwrap()
}

fn at<'a>(table: &'a Table, path: &str) -> Option<&'a Value> {
    let mut parts = path.split('.');
    let first = table.get(parts.next()?);
    parts.fold(first, |value, part| value?.get(part))
}

#[test]
fn it_works_and_states_the_real_defaults() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ran = tollgate(root, &["check", "-c", "config/tollgate.toml"], &SECRETS);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(SECRETS.iter().all(|(_, secret)| !ran.out.contains(secret)), "{}", ran.out);
    let stated = effective(&ran.out);
    // A config that says as little as it may, on the default store.
    let minimal = check(&GOOD.replace("[store]\nurl = \"memory:\"\n", ""), &KEY);
    let defaults = effective(&minimal.out);
    for path in [
        "server",
        "store",
        "admin.listen",
        "callers.anonymous",
        "providers.opencage.base_url",
        "providers.opencage.allow_plain_http",
        "providers.opencage.timeout",
        "providers.opencage.connect_timeout",
        "providers.opencage.connection_age",
        "providers.opencage.flight",
        "providers.opencage.max_answer",
        "providers.opencage.billed",
        "providers.opencage.retry",
        "providers.opencage.breaker",
        "providers.opencage.terms",
        "providers.opencage.respect_cache_control",
        "routes.geocode.version",
        "routes.geocode.coalesce",
        "routes.geocode.scope",
        "routes.geocode.on_weak",
        "routes.geocode.on_store_error",
        "routes.geocode.deadline",
        "routes.geocode.max_body",
        "routes.geocode.expose",
    ] {
        assert_eq!(at(&stated, path), at(&defaults, path), "{path}");
        assert!(at(&stated, path).is_some(), "{path} is not stated");
    }
}

/// The write that stands there as a comment, for want of its secret.
#[test]
fn its_write_works_and_states_the_real_defaults() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("config/tollgate.toml")).unwrap();
    let (before, write) = text.split_once("# [providers.twilio]\n").unwrap();
    let write: Vec<&str> = write.lines().map(|line| line.strip_prefix("# ").unwrap_or(line)).collect();
    let secrets = [SECRETS.as_slice(), &[("TWILIO_AUTH_TOKEN", "twilio-secret")]].concat();
    let ran = check(&format!("{before}[providers.twilio]\n{}\n", write.join("\n")), &secrets);
    assert_eq!((ran.code, ran.out.contains("twilio-secret")), (Some(0), false), "{ran:?}");
    let bare = "[providers.twilio]\npreset = \"twilio\"\nkey = \"env:OPENCAGE_KEY\"\nprice = \"0.0079 USD\"\nbudget = \"none\"\n\
                [routes.sms]\nprovider = \"twilio\"\noperation = \"send-message\"\nwrites = {}\n";
    let minimal = check(&super::and(bare), &KEY);
    let (stated, defaults) = (effective(&ran.out), effective(&minimal.out));
    assert_eq!(at(&stated, "routes.sms.writes"), at(&defaults, "routes.sms.writes"));
    assert!(at(&stated, "routes.sms.writes.lease").is_some());
}

/// Keys that a preset states, and an operator hardly ever.
const OF_PRESETS: [&str; 5] = ["public_hosts", "refusals", "volatile", "outcomes", "idempotency"];

#[test]
fn it_names_every_key() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(root.join("config/tollgate.toml")).unwrap();
    let reference = std::fs::read_to_string(root.join("docs/REFERENCE.md")).unwrap();
    let states = |key: &str| {
        let mut lines = text.lines().map(|line| line.trim_start_matches("# "));
        lines.any(|line| line.starts_with(&format!("{key} =")) || line.starts_with('[') && line.contains(&format!(".{key}]")))
    };
    for table in ["[server]", "[admin]", "[store]", "[callers]", "[providers.opencage]", "[routes.geocode]"] {
        // A key that nobody knows is told what is known there: that is the list.
        let ran = check(&text.replace(&format!("\n{table}\n"), &format!("\n{table}\nzzzzzzzz = 1\n")), &SECRETS);
        let known = ran.err.split("known here: ").nth(1).unwrap_or_else(|| panic!("{table}: {ran:?}"));
        for key in known.lines().next().unwrap().split(", ") {
            let elsewhere = OF_PRESETS.contains(&key) || text.contains(&format!("[{}.{key}.", table.trim_matches(['[', ']'])));
            assert!(states(key) || elsewhere, "{table} {key} is not in the file");
            assert!(reference.contains(&format!("`{key}")), "{table} {key} is not in the reference");
        }
    }
}
