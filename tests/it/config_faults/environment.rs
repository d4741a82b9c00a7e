//! The environment, laid over the file.

use std::os::unix::ffi::OsStrExt as _;
use std::process::Command;

use super::{GOOD, KEY, Ran, check, directory};

fn with_environment(more: &[(&str, &str)]) -> Ran {
    let environment: Vec<(&str, &str)> = KEY.iter().chain(more).copied().collect();
    check(GOOD, &environment)
}

#[test]
fn every_key_can_be_overridden() {
    let ran = with_environment(&[
        ("TOLLGATE__SERVER__DRAIN", "7s"),
        ("TOLLGATE__SERVER__MAX_CONNECTIONS", "17"),
        ("TOLLGATE__SERVER__LISTEN", "127.0.0.1:1, 127.0.0.1:2"),
        ("TOLLGATE__PROVIDERS__OPENCAGE__PRICE", "0.007 USD"),
        ("TOLLGATE__PROVIDERS__OPENCAGE__RETRY__ATTEMPTS", "2"),
        ("TOLLGATE__PROVIDERS__OPENCAGE__ALLOW_PLAIN_HTTP", "true"),
        ("TOLLGATE__ROUTES__GEOCODE__CACHE__FOUND", "5d"),
        ("TOLLGATE__CALLERS__KEYS__MORE__SHA256", "ab0123456789abcdefab0123456789abcdefab0123456789abcdefab01234567"),
        ("TOLLGATE_LOG", "debug"),
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in [
        "drain = \"7s\"",
        "max_connections = 17",
        "price = \"0.007 USD\"",
        "attempts = 2",
        "allow_plain_http = true",
        "found = \"5d\"",
        "[callers.keys.more]",
        "\"127.0.0.1:2\"",
    ] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }
    // What the preset says beside it stays.
    assert!(ran.out.contains("not_found = \"6h\""), "{}", ran.out);
}

#[test]
fn lists_and_tables_can_be_written_as_in_the_file() {
    let ran = with_environment(&[
        ("TOLLGATE__SERVER__LISTEN", "[\"127.0.0.1:1\", \"[::1]:2\"]"),
        ("TOLLGATE__SERVER__TRUSTED_PROXIES", "[\"10.0.0.0/8\"]"),
        ("TOLLGATE__ADMIN__LISTEN", "[::1]:3"),
        ("TOLLGATE__ROUTES__GEOCODE__ONE_OF", "[[\"q\"]]"),
        ("TOLLGATE__ROUTES__GEOCODE__LIMITS", "{ caller = { burst = 10, rate = \"1/5s\" } }"),
    ]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for line in ["\"[::1]:2\"", "\"10.0.0.0/8\"", "listen = \"[::1]:3\"", "one_of = [[\"q\"]]", "rate = \"1/5s\""] {
        assert!(ran.out.contains(line), "{line}\n{}", ran.out);
    }
    let wrong = with_environment(&[("TOLLGATE__ROUTES__GEOCODE__LIMITS", "{ caller = { burst = 0, rate = \"1/5s\" } }")]);
    let fault = "environment TOLLGATE__ROUTES__GEOCODE__LIMITS: routes.geocode.limits.caller.burst: ";
    assert!(wrong.code == Some(78) && wrong.err.contains(fault), "{wrong:?}");
}

#[test]
fn names_with_dashes_are_written_with_underscores() {
    let text = GOOD
        .replace("[providers.opencage]", "[providers.open-cage]")
        .replace("provider = \"opencage\"", "provider = \"open-cage\"");
    let ran = check(&text, &[KEY[0], ("TOLLGATE__PROVIDERS__OPEN_CAGE__PRICE", "0.009 USD")]);
    assert!(ran.code == Some(0) && ran.out.contains("price = \"0.009 USD\""), "{ran:?}");
}

#[test]
fn faults_of_the_environment_name_the_variable() {
    let ran = with_environment(&[
        ("TOLLGATE__SERVER__DRAIN", "soon"),
        ("TOLLGATE__SERVER__DRIAN", "1s"),
        ("TOLLGATE__PROVIDERS__OPENCAGE__PRICE", "1"),
        ("TOLLGATE__SEVRER__DRAIN", "1s"),
        ("TOLLGATE__ADMIN__TOKEN", "in-the-clear-token"),
    ]);
    assert_eq!(ran.code, Some(78));
    for fault in [
        "environment TOLLGATE__SERVER__DRAIN: server.drain: \"soon\" is not a duration",
        "environment TOLLGATE__SERVER__DRIAN: server.drian: unknown key",
        "environment TOLLGATE__PROVIDERS__OPENCAGE__PRICE: providers.opencage.price: ",
        "environment TOLLGATE__SEVRER__DRAIN: sevrer: unknown key",
        "environment TOLLGATE__ADMIN__TOKEN: admin.token: a secret stands here in the clear",
    ] {
        assert!(ran.err.contains(fault), "{fault}\n{}", ran.err);
    }
    assert!(ran.err.ends_with("5 faults in the config\n") && !ran.err.contains("in-the-clear-token"), "{}", ran.err);
}

#[test]
fn a_value_that_is_no_text_is_a_fault_and_hides_no_other() {
    let dir = directory(GOOD);
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.current_dir(dir.path()).env_clear().args(["check", "-c", "t.toml"]).envs(KEY);
    command.env("TOLLGATE__SERVER__DRAIN", std::ffi::OsStr::from_bytes(b"\xff")).env("TOLLGATE__SERVER__IDLE_TIMEOUT", "soon");
    let ran: Ran = command.output().unwrap().into();
    assert_eq!(ran.code, Some(78), "{ran:?}");
    for fault in [
        "environment TOLLGATE__SERVER__DRAIN: server.drain: ",
        "environment TOLLGATE__SERVER__IDLE_TIMEOUT: server.idle_timeout: ",
    ] {
        assert!(ran.err.contains(fault), "{fault}\n{}", ran.err);
    }
}

#[test]
fn the_port_of_a_platform_is_taken_unless_the_file_says_where_to_listen() {
    let ran = with_environment(&[("PORT", "8123")]);
    assert!(ran.out.contains("listen = [\"0.0.0.0:8123\"]"), "{ran:?}");
    let stated = format!("[server]\nlisten = \"127.0.0.1:1\"\n{GOOD}");
    assert!(check(&stated, &[KEY[0], ("PORT", "8123")]).out.contains("listen = [\"127.0.0.1:1\"]"));
    let wrong = with_environment(&[("PORT", "http")]);
    assert!(wrong.code == Some(78) && wrong.err.contains("environment PORT: server.listen: "), "{wrong:?}");
}
