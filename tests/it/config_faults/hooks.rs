//! Faults of `[hooks]`, with their exact words.

use super::{KEY, and, check};

fn faults(lines: &str) -> String {
    let ran = check(&and(lines), &KEY);
    assert_eq!((ran.code, ran.out.as_str()), (Some(78), ""), "{ran:?}");
    ran.err
}

#[test]
fn a_listener_without_a_hook() {
    let told = faults("[hooks]\nlisten = \"9098\"");
    insta::assert_snapshot!(told, @r#"
    t.toml:13:2: hooks.google_budget: is missing: there is nothing to listen for
        remedy: add it, or remove [hooks]
    t.toml:14:1: hooks.listen: "9098" is not an address and port
        remedy: write an address and port, such as "127.0.0.1:8080"
    2 faults in the config
    "#);
}

#[test]
fn a_hook_that_names_nobody() {
    insta::assert_snapshot!(faults("[hooks]\ngoogle_budget = {}"), @r#"
    t.toml:14:1: hooks.google_budget.audience: is missing
        remedy: write what the push subscription has as its audience: the address it pushes to, unless it says otherwise
    t.toml:14:1: hooks.google_budget.email: is missing
        remedy: write the service account of the push subscription, such as "push@project.iam.gserviceaccount.com"
    2 faults in the config
    "#);
}

#[test]
fn a_hook_of_what_is_not_there() {
    let told = faults(
        "[hooks.google_budget]\naudience = \"\"\nemail = \"push\"\nat = 0\nroute = \"nowhere\"\nposition = \"on\"\n\
         jwks = \"http://127.0.0.1.example/keys\"\nmaker = \"x\"",
    );
    insta::assert_snapshot!(told, @r#"
    t.toml:14:1: hooks.google_budget.audience: is no audience
        remedy: write what the push subscription has as its audience: the address it pushes to, unless it says otherwise
    t.toml:15:1: hooks.google_budget.email: is no address of an account
        remedy: write the service account of the push subscription, such as "push@project.iam.gserviceaccount.com"
    t.toml:16:1: hooks.google_budget.at: 0 is not above 0 and at most 10
        remedy: write a share of the budget, such as 1.0 or 0.9
    t.toml:17:1: hooks.google_budget.route: there is no route "nowhere"
        remedy: name one of [routes], or "all"
    t.toml:18:1: hooks.google_budget.position: "on" stops nothing
        remedy: write "cached" or "off"
    t.toml:19:1: hooks.google_budget.jwks: "http://127.0.0.1.example/keys" is neither https nor a file
        remedy: write jwks = "https://.." or "file:PATH"
    t.toml:20:1: hooks.google_budget.maker: unknown key
        remedy: known here: at, audience, email, jwks, position, route
    7 faults in the config
    "#);
}

#[test]
fn shares_that_are_none() {
    let mut told = String::new();
    for share in ["-0.5", "10.000001", "1e-7", "nan", "\"1\"", "true"] {
        told += &faults(&format!("[hooks.google_budget]\naudience = \"x\"\nemail = \"a@b\"\nat = {share}"));
    }
    insta::assert_snapshot!(told, @r#"
    t.toml:16:1: hooks.google_budget.at: -0.5 is not above 0 and at most 10
        remedy: write a share of the budget, such as 1.0 or 0.9
    1 fault in the config
    t.toml:16:1: hooks.google_budget.at: 10.000001 is not above 0 and at most 10
        remedy: write a share of the budget, such as 1.0 or 0.9
    1 fault in the config
    t.toml:16:1: hooks.google_budget.at: 1e-7 is finer than a millionth
        remedy: write a share of the budget, such as 1.0 or 0.9
    1 fault in the config
    t.toml:16:1: hooks.google_budget.at: nan is not a number
        remedy: write a share of the budget, such as 1.0 or 0.9
    1 fault in the config
    t.toml:16:1: hooks.google_budget.at: is "1", not a number
        remedy: write a share of the budget, such as 1.0 or 0.9
    1 fault in the config
    t.toml:16:1: hooks.google_budget.at: is true, not a number
        remedy: write a share of the budget, such as 1.0 or 0.9
    1 fault in the config
    "#);
}

#[test]
fn a_hook_that_says_enough_takes_effect_with_its_defaults() {
    let ran = check(&and("[hooks]\ngoogle_budget = { audience = \"https://gate.example\", email = \"push@p.example\" }"), &KEY);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let effective: toml::Table = toml::from_str(&ran.out).unwrap();
    insta::assert_snapshot!(effective["hooks"], @r#"{ google_budget = { at = 1.0, audience = "https://gate.example", email = "push@p.example", jwks = "https://www.googleapis.com/oauth2/v3/certs", position = "cached", route = "all" }, listen = "127.0.0.1:9098" }"#);
    // The environment, too, writes shares.
    let share = ("TOLLGATE__HOOKS__GOOGLE_BUDGET__AT", "0.9");
    let ran = check(&and("[hooks.google_budget]\naudience = \"x\"\nemail = \"a@b\"\nat = 1"), &[KEY[0], share]);
    assert!(ran.out.contains("\nat = 0.9\n"), "{ran:?}");
}
