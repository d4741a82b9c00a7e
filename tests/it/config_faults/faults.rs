//! Every fault that `check` must find: one bad fixture a rule, with its exact words.

use super::{GOOD, KEY, and, check, with};

/// A route of one's own shape behind the good config.
fn own(route: &str, question: &str, rest: &str) -> String {
    and(&format!(
        "[routes.own]\nprovider = \"opencage\"\nexpose = \"GET /own\"\nbudget = \"none\"\n{route}\n[routes.own.question]\n{question}\n{rest}"
    ))
}

#[allow(clippy::too_many_lines, reason = "a list")]
fn fixtures() -> Vec<(&'static str, String)> {
    let q = "q = { in = \"query\", type = \"text\", required = true }";
    let two = "a = { in = \"query\", type = \"text\" }\nb = { in = \"query\", type = \"text\" }";
    vec![
        ("a paid provider without a price", with("price = \"0.005 USD\"\n", "")),
        ("a paid route under no budget", with("budget = \"none\"\n", "")),
        ("budgets that hold nothing", with("budget = \"none\"", "budget = { day = \"0.001 USD\", month = \"0 USD\", caller_day = \"1 EUR\", zone = \"Mars/Olympus\", alert = [0] }")),
        ("budgets that are none", with("budget = \"none\"", "budget = \"20 USD\"")),
        ("a budget without a cap", with("budget = \"none\"", "budget = { zone = \"UTC\" }")),
        ("a provider's budget for a caller", with("price = \"0.005 USD\"", "price = \"0.005 USD\"\nbudget = { caller_day = \"1 USD\" }")),
        ("odd amounts", with("price = \"0.005 USD\"", "price = \"NaN USD\"\ncost = \"$[\"\nbudget = { day = \"-1 USD\", month = \"9223372036854775808 USD\" }")),
        ("prices that cannot be reckoned", with("price = \"0.005 USD\"", "price = { units = \"pages\", each = \"0.01 USD\" }").replace("[callers.keys", "[providers.sms]\nbase_url = \"https://sms.example\"\nprice = { table = [{ prefix = \"+1\", price = \"1 EUR\" }], otherwise = \"0.10 USD\" }\n[routes.sms]\nprovider = \"sms\"\nexpose = \"GET /sms\"\nbudget = \"none\"\nmax_price = \"0.05 USD\"\n[callers.keys")),
        ("anonymous callers without limits", with("[callers.keys.web]", "[callers]\nanonymous = \"by-ip\"\n[callers.keys.web]")),
        ("answers kept longer than the terms", and("cache = { found = \"3650d\", stale_if_error = \"1d\" }\n[providers.google]\npreset = \"google-geocoding\"\nkey = \"env:OPENCAGE_KEY\"\nprice = \"0.005 USD\"\n[routes.google]\nprovider = \"google\"\noperation = \"geocode\"\nbudget = \"none\"\ncache = { found = \"30d\" }")),
        ("terms raised without a reason", and("[providers.google]\npreset = \"google-geocoding\"\nkey = \"env:OPENCAGE_KEY\"\nprice = \"0.005 USD\"\nterms = { max_store = \"30d\" }\n[routes.google]\nprovider = \"google\"\noperation = \"geocode\"\nbudget = \"none\"\ncache = { found = \"30d\" }")),
        ("an empty reason", with("price = \"0.005 USD\"", "price = \"0.005 USD\"\nterms_override = \" \"")),
        ("answers that depend on the moment", and("[providers.routes]\npreset = \"google-routes\"\nkey = \"env:OPENCAGE_KEY\"\nprice = \"0.005 USD\"\nterms_override = \"a test\"\n[routes.fare]\nprovider = \"routes\"\nexpose = \"GET /fare\"\nbudget = \"none\"\ncache = { found = \"1d\" }\n[routes.fare.question]\na = { in = \"query\", type = \"text\" }\n[routes.fare.send]\nmethod = \"POST\"\npath = \"/directions/v2:computeRoutes\"\njson = { origin = { address = \"{a}\" }, routingPreference = \"TRAFFIC_AWARE\" }")),
        ("answers that depend on a moment of the caller's", and("[providers.routes]\npreset = \"google-routes\"\nkey = \"env:OPENCAGE_KEY\"\nprice = \"0.005 USD\"\nterms_override = \"a test\"\n[routes.fare]\nprovider = \"routes\"\nexpose = \"GET /fare\"\nbudget = \"none\"\ncache = { found = \"1d\" }\n[routes.fare.question]\na = { in = \"query\", type = \"text\" }\nat = { in = \"query\", type = \"timestamp\", required = true }\n[routes.fare.send]\nmethod = \"POST\"\npath = \"/directions/v2:computeRoutes\"\njson = { origin = { address = \"{a}\" }, departureTime = \"{at}\" }")),
        ("a cacheable POST whose body is not in the question", own("cache = { found = \"1d\" }", q, "").replace("GET /own", "POST /own")),
        ("unordered fields of unlike type", own("unordered = [[\"q\", \"n\"]]", &format!("{q}\nn = {{ in = \"query\", type = \"integer\" }}"), "[routes.own.reply]\nx = \"$.x\"")),
        ("unordered lists of unlike elements", own("unordered = [[\"a\", \"b\"]]", "a = { in = \"query\", type = \"list\", of = \"text\" }\nb = { in = \"query\", type = \"list\", of = \"integer\" }", "[routes.own.reply]\nx = \"$.x\"")),
        ("unordered without a reply", own("unordered = [[\"a\", \"b\"]]", two, "")),
        ("a flight too short for its attempts", with("price = \"0.005 USD\"", "price = \"0.005 USD\"\nflight = \"10s\"\nretry = { attempts = 3 }\ntimeout = \"6s\"")),
        ("a lease wait longer than the deadline", and("deadline = \"4s\"\nlease = { ttl = \"3s\", wait = \"5s\" }")),
        ("costs above a bucket", and("limits = { caller = { burst = 5, rate = \"1/s\" }, route = { burst = 10, rate = \"1/s\" }, cost = 6 }")),
        ("costs that are none", and("limits = { route = { burst = 10, rate = \"1/s\" }, cost = 0 }")),
        ("a negative cost", and("limits = { route = { burst = 10, rate = \"1/s\" }, cost = -1 }")),
        ("a cost of 2^53", and("limits = { route = { burst = 10, rate = \"1/s\" }, cost = 9007199254740992 }")),
        ("a cost of 2^63", and("limits = { route = { burst = 10, rate = \"1/s\" }, cost = 9223372036854775808 }")),
        ("an embedded store with two instances", with("url = \"memory:\"", "url = \"memory:\"\ninstances = 2")),
        ("two routes that overlap", and("[routes.second]\nprovider = \"opencage\"\noperation = \"geocode\"\nbudget = \"none\"")),
        ("a write route with a cache", and("writes = { key = \"required\" }\ncache = { found = \"1d\" }")),
        ("no routes", GOOD.split("[routes.geocode]").next().unwrap().to_owned()),
        ("routes that are none", with("[routes.geocode]\nprovider = \"opencage\"\noperation = \"geocode\"\nbudget = \"none\"\n", "[routes]\n")),
        ("an unset secret", with("env:OPENCAGE_KEY", "env:NOWHERE_SET")),
        ("an inline secret", with("env:OPENCAGE_KEY", "0123456789abcdef")),
        ("an empty secret", with("env:OPENCAGE_KEY", "env:EMPTY")),
        ("a blank secret", with("env:OPENCAGE_KEY", "env:BLANK")),
        ("a secret that is not ASCII", with("env:OPENCAGE_KEY", "env:UMLAUT")),
        ("a secret in no file", with("env:OPENCAGE_KEY", "file:nowhere")),
        ("an admin token that is not set", with("[store]", "[admin]\ntoken = \"env:NOWHERE_SET\"\n[store]")),
        ("plain http to a provider", with("price = \"0.005 USD\"", "price = \"0.005 USD\"\nbase_url = \"http://api.example\"")),
        ("a password in an address", with("price = \"0.005 USD\"", "price = \"0.005 USD\"\nbase_url = \"https://me:word@api.example\"")),
        ("plain http to what only looks like loopback", with("price = \"0.005 USD\"", "price = \"0.005 USD\"\nbase_url = \"http://127.0.0.1.example\"")),
        ("plain http for token keys", with("[callers.keys.web]", "[callers.jwt]\nissuer = \"https://id.example\"\njwks = \"http://127.0.0.1.example/keys\"\n[callers.keys.web]")),
        ("a route's key in its question", own("", &format!("{q}\ncache = {{ found = \"1d\" }}\ncallers = [\"web\"]\ndeadline = \"3s\"\nlockout = {{ misses = 5 }}\nlimits_by = {{ q = {{ burst = 1, rate = \"1/s\" }} }}"), "")),
        ("unknown keys", with("price = \"0.005 USD\"", "price = \"0.005 USD\"\ntimout = \"6s\"").replace("[store]", "[sevrer]\n[store]\npatiense = \"1s\"").replace("[callers.keys.web]", "[callers.jwt]\nissuer = \"https://id.example\"\naudiense = \"x\"\n[callers.keys.web]")),
        ("unknown keys deep down", and("limits = { caller = { brust = 1, rate = \"1/s\" } }\ncache = { fuond = \"1d\" }\nquestion = { q = { in = \"query\", type = \"text\", mni = 2 } }\nignored = { header = [\"x\"] }\non_store_error = { limit = \"refuse\" }")),
        ("wrong units", with("url = \"memory:\"", "url = \"memory:\"\ntimeout = \"6\"\npatience = 500\nmemory = \"64MB\"").replace("price = \"0.005 USD\"", "price = 0.005\ntimeout = \"0s\"\nmax_answer = \"0B\"\nquota = { burst = 0, rate = \"1/fortnight\" }\nretry = { budget = \"120%\", minimum = \"0/s\" }")),
        ("zero is never unlimited", with("[store]", "[server]\nmax_connections = 0\ndeadline = \"0s\"\nmax_head = \"1KiB\"\n[store]").replace("budget = \"none\"", "budget = \"none\"\ncache = { found = \"0s\", stale_if_error = \"0s\" }")),
        ("words that are none", and("scope = \"galaxy\"\non_weak = \"panic\"\non_store_error = { cache = \"explode\" }").replace("[callers.keys.web]", "[callers]\nanonymous = \"yes\"\nread_key_from = [\"cookie:x\"]\n[callers.keys.web]")),
        ("a caller nobody knows", and("callers = [\"wbe\"]")),
        ("a key that two callers have", with("[providers.opencage]", "[callers.keys.twin]\nsha256 = \"d3c77016f850f1e48f26342dab0c6adee48716ca1e89fdc123d500fc42272820\"\n[callers.keys.short]\nsha256 = \"abc\"\n[callers.keys.none]\n[providers.opencage]")),
        ("a field that reaches nobody", own("", two, "[routes.own.send]\npath = \"/x\"\nquery = { a = \"{a}\" }")),
        ("a template of what is not there", own("", q, "[routes.own.send]\npath = \"/x?y\"\nmethod = \"PUT\"\nquery = { a = \"{nope}\", q = \"{q}\" }\nheaders = { Host = \"x\", \"bad name\" = \"y\" }\njson = { a = \"{q\" }\n[routes.own.reply]\nx = \"$.[\"")),
        ("a path that fits nothing", own("", "a = { in = \"path\", type = \"text\" }\nb = { in = \"header:bad name\", type = \"text\" }\nc = { in = \"json\", at = \"x\", type = \"text\" }\nd = { in = \"body\", type = \"txt\" }", "").replace("GET /own", "GET /own/{b}")),
        ("fields that cannot be", own("", "a = { in = \"query\", type = \"text\", min = 9, max = 3 }\nb = { in = \"query\", type = \"enum\" }\nc = { in = \"query\", type = \"enum\", values = [\"A\"], aliases = { x = \"B\" } }\nd = { in = \"query\", type = \"code\", pattern = \"(\" }\ne = { in = \"query\", type = \"decimal\", places = 99 }\nf = { in = \"query\", type = \"integer\", default = \"x\" }\ng = { in = \"query\", names = [\"a\", \"b\"], type = \"text\" }\nh = { in = \"query\" }\ni = \"text\"", "")),
        ("groups of what is not there", own("one_of = [[\"q\"], [\"r\"], \"q\"]\nlimits_by = { r = { burst = 1, rate = \"1/s\" } }\nlockout = { subject = \"r\", first = \"2d\", max = \"1d\" }", q, "")),
        (
            "two fields in one place",
            own("", "a = { in = \"query\", type = \"text\" }\nb = { in = \"query\", name = \"a\", type = \"text\" }", ""),
        ),
        ("pinned to nothing", own("", q, "[routes.own.pinned]\na = { in = \"query\" }\nb = { in = \"path\", value = \"1\" }\nc = { value = \"1\" }")),
        ("a route without a place", with("operation = \"geocode\"\n", "callers = [\"web\"]\nlimits = { caller = { burst = 1, rate = \"1/s\" } }\nmax_price = \"0.001 USD\"\n")),
        ("a route to nobody", with("provider = \"opencage\"", "provider = \"opencafe\"")),
        ("an operation nobody has", with("operation = \"geocode\"", "operation = \"reverse\"")),
        ("a preset nobody has", with("preset = \"opencage\"", "preset = \"opencafe\"")),
        ("names that are none", with("[routes.geocode]", "[routes.all]").replace("[providers.opencage]", "[providers.\"Open Cage\"]").replace("provider = \"opencage\"", "provider = \"Open Cage\"")),
        ("rules that are unclear", and("outcomes = [{ status = \"9xx\", outcome = \"weak\" }, { at = \"$[\", outcome = \"weak\" }, { outcome = \"fine\" }, { outcome = \"weak\", what = 1 }]\nvolatile = [{ jsn = \"/x\" }]")),
        ("more than a call may cost", and("max_price = \"0.001 USD\"")),
        ("the public nominatim", and("[providers.nominatim]\npreset = \"nominatim\"\nbase_url = \"https://nominatim.openstreetmap.org\"\n[routes.search]\nprovider = \"nominatim\"\noperation = \"search\"")),
        ("a storm of attempts", with("price = \"0.005 USD\"", "price = \"0.005 USD\"\nretry = { attempts = 11 }\nca = \"file:nowhere\"\nbilled = [\"lost\"]\nauth = { in = \"cookie\" }")),
        ("a store that is none", with("memory:", "postgres://x")),
        ("a store that is not built", with("memory:", "redis+cluster://x")),
        ("a shared store with its password in the clear", with("memory:", "redis://:s3cret@localhost/0")),
        ("a shared store nobody verifies", with("memory:", "rediss://localhost/#insecure")),
        ("a shared store that has no address", with("memory:", "redis://localhost:port")),
        ("a shared store's odd settings", with("\"memory:\"", "\"redis://localhost\"\nprefix = \"{a}\"\nca = \"file:nowhere\"\ninstances = 3")),
        ("what only a shared store has", with("\"memory:\"", "\"memory:\"\nca = \"file:nowhere\"\ninstances = 3")),
        ("a rate a shared store cannot count", with("memory:", "redis://localhost") + "limits = { route = { burst = 1000000, rate = \"999983/30d\" } }\n"),
        ("a lease that cannot be kept", and("lease = { ttl = \"100ms\", wait = \"16s\" }")),
        ("parts that are not built", and("[archive]\nurl = \"x\"").replace("price = \"0.005 USD\"", "price = { units = \"segments\", each = \"0.0079 USD\" }")),
        ("alerts to whom it may concern", and("[alerts]\nwebhook = \"http://hooks.example/x\"\nsecret = \"topsecret\"\nurl = 1")),
        ("alerts with a password", and("[alerts]\nwebhook = \"https://me:word@hooks.example/x\"")),
        ("alerts to nobody", and("[alerts]\nsecret = \"env:NOT_SET\"")),
        ("a budget that tells and stops nothing", with("budget = \"none\"", "budget = { caller_day = \"1 USD\", alert = [101], stop = \"off\" }").replace("[providers.opencage]", "[providers.opencage]\nbudget = { day = \"1 USD\", stop = \"on\" }")),
        ("what is no TOML", "[store\nurl = \n[x]\n".to_owned()),
        ("nothing at all", String::new()),
    ]
}

/// Of writes, and of what they are made of.
fn of_writes() -> Vec<(&'static str, String)> {
    let q = "q = { in = \"query\", type = \"text\", required = true }";
    vec![
        ("a write that is answered from what is kept", own("writes = {}\ncache = { found = \"1d\" }\ncurated = \"nowhere.jsonl\"\nrefresh = { burst = 1, rate = \"1/m\" }", q, "").replace("GET /own", "POST /own")),
        ("a write behind a link", own("writes = {}", q, "")),
        ("a write that is made a read", and("[providers.stripe]\npreset = \"stripe\"\nkey = \"env:OPENCAGE_KEY\"\nprice = \"0.30 USD\"\n[routes.named]\nprovider = \"stripe\"\noperation = \"create-payment-intent\"\nbudget = \"none\"\nwrites = false\n[routes.own]\nprovider = \"stripe\"\nexpose = \"POST /pay\"\nbudget = \"none\"\nwrites = false\nsend = { path = \"/v1/payment_intents\" }\n[routes.link]\nprovider = \"stripe\"\nexpose = \"GET /pay\"\nbudget = \"none\"\ncache = { found = \"1d\" }\nsend = { method = \"POST\", path = \"/v1/payment_intents\" }")),
        ("a write that no preset describes", and("[providers.stripe]\npreset = \"stripe\"\nkey = \"env:OPENCAGE_KEY\"\nprice = \"0.30 USD\"\n[routes.refund]\nprovider = \"stripe\"\nexpose = \"POST /v1/refunds\"\nbudget = \"none\"\n[routes.refund.question]\ncharge = { in = \"form\", type = \"string\", required = true }")),
        ("a write of nobody's", own("writes = {}\nlimits = { caller = { burst = 1, rate = \"1/m\" } }", q, "").replace("GET /own", "POST /own").replace("[callers.keys.web]", "[callers]\nanonymous = \"by-ip\"\n[callers.keys.web]").replace("operation = \"geocode\"", "operation = \"geocode\"\nlimits = { caller = { burst = 1, rate = \"1/m\" } }")),
        ("writes that cannot be", and("[routes.a]\nprovider = \"opencage\"\nexpose = \"POST /a\"\nbudget = \"none\"\nwrites = { key = \"sometimes\", keep = \"0s\", lease = \"500ms\", ttl = \"1s\" }\n[routes.b]\nprovider = \"opencage\"\nexpose = \"POST /b\"\nbudget = \"none\"\nwrites = { lease = \"6m\" }\n[routes.c]\nprovider = \"opencage\"\nexpose = \"POST /c\"\nbudget = \"none\"\nwrites = { lease = \"2s\" }")),
        ("the rest of a form on a read", own("", "all = { in = \"form\", type = \"rest\" }", "").replace("GET /own", "POST /own")),
        ("the rest of what is no form", own("writes = {}", "a = { in = \"query\", type = \"rest\" }\nb = { in = \"form\", type = \"list\", of = \"rest\" }\nc = { in = \"form\", type = \"rest\" }\nd = { in = \"form\", type = \"rest\" }", "").replace("GET /own", "POST /own")),
        ("a rest that is sent otherwise", own("writes = {}", "all = { in = \"form\", type = \"rest\" }", "[routes.own.send]\npath = \"/x\"\nform = { x = \"{all}\" }\njson = { a = 1 }").replace("GET /own", "POST /own")),
        ("refusals that are none", with("price = \"0.005 USD\"", "price = \"0.005 USD\"\n[providers.opencage.refusals]\nstop = { status = 600 }\noutcome_unkown = { status = 409 }\nbusy = { status = \"mine\", headers = { Connection = \"close\" } }")),
        ("a table of refusals with a row only", with("preset = \"opencage\"", "base_url = \"https://x.example\"\nauth = { in = \"bearer\" }\nrefusals = { stop = { status = 403, body = {} } }").replace("operation = \"geocode\"\n", "expose = \"GET /x\"\n")),
        ("a password of nobody's", with("preset = \"opencage\"", "base_url = \"https://x.example\"\nauth = { in = \"basic\" }").replace("operation = \"geocode\"\n", "expose = \"GET /x\"\n")),
        ("an account where none is asked for", with("price = \"0.005 USD\"", "price = \"0.005 USD\"\naccount = \"AC1\"")),
        ("an account that is none", and("[providers.twilio]\npreset = \"twilio\"\nkey = \"env:OPENCAGE_KEY\"\nprice = \"0.0079 USD\"\naccount = \"SK1\"\n[routes.sms]\nprovider = \"twilio\"\noperation = \"send-message\"\nbudget = \"none\"\n[providers.two]\npreset = \"twilio\"\nkey = \"env:OPENCAGE_KEY\"\nprice = \"0.0079 USD\"\naccount = \"env:NOWHERE_SET\"\n[providers.three]\npreset = \"twilio\"\nkey = \"env:OPENCAGE_KEY\"\nprice = \"0.0079 USD\"\naccount = \"AC:1\"\n[routes.three]\nprovider = \"three\"\nexpose = \"POST /three\"\nbudget = \"none\"")),
        ("a key that goes nowhere", with("price = \"0.005 USD\"", "price = \"0.005 USD\"\nidempotency = { replayed = \"bad name\", conclusive = [\"often\"], remembers = \"0s\" }")),
        ("texts and codes that cannot be", own("", "a = { in = \"query\", type = \"string\", min = 9, max = 3 }\nb = { in = \"query\", type = \"code\", pad = 65 }\nc = { in = \"query\", type = \"list\", of = \"string\", separator = \"::\" }", "")),
    ]
}

#[test]
fn every_fault_has_its_place_and_its_remedy() {
    let environment = [KEY[0], ("EMPTY", ""), ("BLANK", "  \n"), ("UMLAUT", "schlüssel")];
    let mut seen = String::new();
    for (what, text) in fixtures().into_iter().chain(of_writes()) {
        let ran = check(&text, &environment);
        assert_eq!((ran.code, ran.out.as_str()), (Some(78), ""), "{what}: {ran:?}");
        assert!(!ran.err.contains("0123456789abcdef") && !ran.err.contains("schlüssel"), "{what} shows a secret: {}", ran.err);
        // Each fault names file, line and key, and says what would be right.
        assert_eq!(ran.err.matches("\n    remedy: ").count(), ran.err.lines().count() / 2, "{what}: {}", ran.err);
        seen += &format!("## {what}\n{}\n", ran.err);
    }
    insta::assert_snapshot!("faults", seen);
}

#[test]
fn all_faults_are_told_at_once() {
    // A provider with a fault hides none of its route, nor a part of a route another part.
    let text = GOOD
        .replace("url = \"memory:\"", "url = \"postgres:\"")
        .replace("price = \"0.005 USD\"", "price = \"a lot\"\nbase_url = \"http://api.example\"")
        .replace("budget = \"none\"", "expose = \"FETCH /x\"\ndeadline = \"soon\"\ncallers = [\"nobody\"]\nlimits = { caller = { burst = 1, rate = \"1/s\" }, cost = 2 }\nmax_price = \"1\"");
    let ran = check(&text, &[]);
    assert_eq!(ran.code, Some(78));
    for fault in [
        "t.toml:2:1: store.url: ",
        "t.toml:7:1: providers.opencage.key: environment variable OPENCAGE_KEY is not set",
        "t.toml:8:1: providers.opencage.price: ",
        "t.toml:9:1: providers.opencage.base_url: ",
        "t.toml:13:1: routes.geocode.expose: ",
        "t.toml:14:1: routes.geocode.deadline: ",
        "t.toml:15:1: routes.geocode.callers: ",
        "t.toml:16:1: routes.geocode.limits: ",
        "t.toml:17:1: routes.geocode.max_price: ",
        "routes.geocode.budget: ",
    ] {
        assert!(ran.err.contains(fault), "{fault}\n{}", ran.err);
    }
    assert!(!ran.err.contains("unknown key"), "{}", ran.err);
    assert!(ran.err.ends_with("10 faults in the config\n"), "{}", ran.err);
}

#[test]
fn a_fault_deep_in_a_table_names_its_own_line() {
    let ran = check(
        &and(
            "[routes.geocode.cache]\nfound = \"1d\"\nweak = \"4000d\"\n[routes.geocode.question]\nextra = { in = \"path\", type = \"text\" }",
        ),
        &KEY,
    );
    assert!(ran.err.contains("t.toml:15:1: routes.geocode.cache.weak: the provider's terms"), "{}", ran.err);
    assert!(ran.err.contains("t.toml:17:1: routes.geocode.question.extra: "), "{}", ran.err);
}

#[test]
fn did_you_mean() {
    for (wrong, right) in [("timout", "timeout"), ("pirce", "price"), ("baseurl", "base_url"), ("Price", "price")] {
        let ran = check(&with("price = \"0.005 USD\"", &format!("price = \"0.005 USD\"\n{wrong} = \"1\"")), &KEY);
        let told = format!("t.toml:9:1: providers.opencage.{wrong}: unknown key\n    remedy: did you mean `{right}`?\n");
        assert_eq!(ran.err, format!("{told}1 fault in the config\n"));
    }
}
