//! Commands, their exit codes, and what they must not print.

use super::{GOOD, KEY, Ran, and, check, directory, tollgate};

#[test]
fn wrong_arguments_are_2_and_wrong_configs_78() {
    let dir = directory(GOOD);
    let code = |arguments: &[&str]| tollgate(dir.path(), arguments, &[]).code;
    for arguments in [
        &[][..],
        &["frobnicate"],
        &["check", "--nope"],
        &["key"],
        &["key", "Not A Name"],
        &["key", "a", "--for", "bing"],
        &["explain", "GET"],
        &["sandbox", "--listen", "here"],
    ] {
        assert_eq!(code(arguments), Some(2), "{arguments:?}");
    }
    // The secret is not set, so this config is wrong for all of them.
    for arguments in [&["check", "-c", "t.toml"][..], &["serve", "-c", "t.toml"], &["explain", "-c", "t.toml", "GET", "/"]] {
        let ran = tollgate(dir.path(), arguments, &[]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(78), ""), "{ran:?}");
        assert!(ran.err.contains("environment variable OPENCAGE_KEY is not set\n    remedy: "), "{ran:?}");
    }
    let missing = tollgate(dir.path(), &["serve"], &[]);
    assert!(missing.code == Some(78) && missing.err.contains("tollgate.toml:1:1: cannot be read"), "{missing:?}");
    for arguments in [&["--help"][..], &["--version"]] {
        assert_eq!(code(arguments), Some(0), "{arguments:?}");
    }
}

#[test]
fn the_file_may_be_named_by_the_environment() {
    let dir = directory(GOOD);
    assert_eq!(tollgate(dir.path(), &["check"], &[KEY[0], ("TOLLGATE_CONFIG", "t.toml")]).code, Some(0));
}

#[test]
fn check_prints_what_takes_effect_and_no_secret() {
    let ran = tollgate(directory(GOOD).path(), &["check", "-c", "t.toml"], &KEY);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert!(!ran.out.contains("0123456789abcdef") && !ran.out.contains("d3c77016"), "{}", ran.out);
    insta::assert_snapshot!("effective", ran.out);
    // What it prints is TOML.
    toml::from_str::<toml::Table>(&ran.out).unwrap();
}

#[test]
fn files_of_this_repository_pass() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    let demo = tollgate(
        root,
        &["check", "-c", "config/demo.toml"],
        &[("DEMO_KEY", "demo-secret"), ("DEMO_ADMIN_TOKEN", "demo-secret-token")],
    );
    assert_eq!(demo.code, Some(0), "{demo:?}");
    assert!(!demo.out.contains("demo-secret"));
    let readme = std::fs::read_to_string(root.join("README.md")).unwrap();
    let mut examples = 0;
    for block in readme.split("```toml\n").skip(1) {
        let example = block.split("```").next().unwrap();
        let ran = tollgate(directory(example).path(), &["check", "-c", "t.toml"], &KEY);
        assert_eq!(ran.code, Some(0), "{ran:?}");
        assert!(!ran.out.contains(KEY[0].1));
        examples += 1;
    }
    assert!(examples > 0);
}

fn explain(arguments: &[&str]) -> Ran {
    // Nothing listens there: whoever is called does not answer.
    let text = and("limits = { caller = { burst = 10, rate = \"1/s\" } }")
        .replace("price =", "base_url = \"http://127.0.0.1:9\"\nprice =");
    let all: Vec<&str> = ["explain", "-c", "t.toml"].iter().chain(arguments).copied().collect();
    tollgate(directory(&text).path(), &all, &KEY)
}

#[test]
fn explain_tells_everything_and_calls_nobody() {
    // SHA-256 of this key stands in the config.
    let key = "X-Api-Key: key-of-the-readme";
    let ran = explain(&["GET", "/geocode/v1/json?language=DE&q=Berlin,%20%20GERMANY", "-H", key]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{ran:?}");
    assert!(ran.out.contains("refused    by authenticate: unauthenticated (401)"), "{}", ran.out);
    let whole = GOOD.replace("[callers.keys.web]", "[callers]\nanonymous = \"by-ip\"\n[callers.keys.web]")
        + "limits = { caller = { burst = 10, rate = \"1/s\" } }\n";
    let dir = directory(&whole);
    let ask = |target: &str| tollgate(dir.path(), &["explain", "-c", "t.toml", "GET", target], &KEY);
    let ran = ask("/geocode/v1/json?language=DE&q=Berlin,%20%20GERMANY");
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.out.contains(KEY[0].1), "{}", ran.out);
    insta::assert_snapshot!("explain", ran.out);
    // One question has one key, however it is spelled.
    let key = |ran: &Ran| ran.out.lines().find(|line| line.starts_with("key ")).map(str::to_owned);
    assert_eq!(key(&ask("/geocode/v1/json?q=berlin,germany&language=de")), key(&ran));
    assert_ne!(key(&ask("/geocode/v1/json?q=berlin,germany")), key(&ran));
    let refused = ask("/geocode/v1/json?q=!!");
    assert!(
        refused.out.contains("refused    by validate: invalid_question (400): `q` must hold a letter or digit"),
        "{refused:?}"
    );
    assert_eq!(ask("/nowhere").code, Some(1));
}

#[test]
fn explain_tells_what_a_write_would_be_and_hides_its_token() {
    let text = and(
        "[providers.twilio]\npreset = \"twilio\"\nkey = \"env:TWILIO\"\nprice = { units = \"segments\", each = \"0.0079 USD\" }\n\
                    [routes.sms]\nprovider = \"twilio\"\noperation = \"send-message\"\nbudget = \"none\"\n\
                    [providers.stripe]\npreset = \"stripe\"\nkey = \"env:OPENCAGE_KEY\"\nprice = \"0.30 USD\"\n\
                    [routes.pay]\nprovider = \"stripe\"\noperation = \"create-payment-intent\"\nbudget = \"none\"",
    )
    .replace("d3c77016f850f1e48f26342dab0c6adee48716ca1e89fdc123d500fc42272820", &crate::support::gate::sha256("caller-key"));
    let dir = directory(&text);
    let ask = |path: &str, form: &str, key: &str| {
        let arguments = ["explain", "-c", "t.toml", "POST", path, "-H", "X-Api-Key: caller-key", "-H", key, "-d", form];
        tollgate(dir.path(), &arguments, &[KEY[0], ("TWILIO", "AC0ours:t0ken-of-ours")])
    };
    let sms = "/2010-04-01/Accounts/AC0caller/Messages.json";
    let message = "To=001+500+555+0006&From=%2B15005550001&Body=Hi%0A%F0%9F%91%8B";
    let sent = ask(sms, message, "Idempotency-Key: k");
    let paid = ask("/v1/payment_intents", "amount=5&currency=EUR&metadata[a]=1", "Idempotency-Key: k");
    assert_eq!((sent.code, paid.code), (Some(0), Some(0)), "{sent:?} {paid:?}");
    assert!(!sent.out.contains("t0ken") && !paid.out.contains(KEY[0].1));
    insta::assert_snapshot!("explain_writes", sent.out + "\n" + &paid.out);
    let refused = ask(sms, message, "X-Other: k").out;
    assert!(refused.contains("refused    by validate: idempotency_key_missing (400)"), "{refused}");
}

#[test]
fn explain_asks_no_issuer_for_its_keys() {
    let issuer = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    issuer.set_nonblocking(true).unwrap();
    let jwks = format!("http://{}/jwks", issuer.local_addr().unwrap());
    let jwt = format!("[callers.jwt]\nissuer = \"https://id.example\"\njwks = \"{jwks}\"\n[callers.keys.web]");
    let dir = directory(&GOOD.replace("[callers.keys.web]", &jwt));
    let ask = ["explain", "-c", "t.toml", "GET", "/geocode/v1/json?q=Berlin", "-H", "Authorization: Bearer a.b.c"];
    let ran = tollgate(dir.path(), &ask, &KEY);
    assert!(ran.out.contains("refused    by authenticate: unauthenticated (401)"), "{ran:?}");
    assert!(issuer.accept().is_err(), "nobody knocked");
}

#[test]
fn a_key_is_printed_once_with_the_lines_that_hold_its_digest() {
    let dir = directory("");
    for (shape, begins, length) in
        [(None, "tg_", 46), (Some("google"), "AIza", 39), (Some("twilio"), "", 32), (Some("mapbox"), "pk.", 0)]
    {
        let arguments: Vec<&str> = ["key", "web-1"].into_iter().chain(shape.iter().flat_map(|shape| ["--for", shape])).collect();
        let ran = tollgate(dir.path(), &arguments, &[]);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
        let lines: Vec<&str> = ran.out.lines().collect();
        let key = lines[0];
        assert!(key.starts_with(begins) && (length == 0 || key.len() == length), "{key}");
        assert_eq!(lines[3], "[callers.keys.web-1]");
        assert_eq!(lines[4], format!("sha256 = \"{}\"", crate::support::gate::sha256(key)));
        assert_eq!(ran.out.matches(key).count(), 1);
        // The lines work as they are.
        let config = GOOD.replace("[callers.keys.web]", "[callers.keys.other]") + &lines[3..].join("\n");
        assert_eq!(super::check(&config, &KEY).code, Some(0), "{config}");
    }
}

#[test]
fn what_is_pinned_and_sent_is_shown_as_it_is_written() {
    let text = format!(
        "{GOOD}[routes.geocode.pinned]\nno_record = {{ in = \"query\", value = \"1\" }}\n[routes.town]\nprovider = \"opencage\"\n\
         expose = \"GET /town\"\nbudget = \"none\"\n[routes.town.question]\nq = {{ in = \"query\", type = \"text\" }}\n\
         [routes.town.send]\nmethod = \"POST\"\npath = \"/town\"\njson = {{ town = {{ name = \"{{q}}\" }}, deep = true }}\n"
    );
    let ran = check(&text, &KEY);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    for part in ["value = \"1\"\n", "[routes.town.send.json]\ndeep = true\n", "[routes.town.send.json.town]\nname = \"{q}\"\n"] {
        assert!(ran.out.contains(part), "{part}\n{}", ran.out);
    }
}
