//! The provider's credential leaves by no door but the provider's.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use serde_json::json;

use crate::support::client::{Client, Reply};
use crate::support::gate::{SECRET, Setup, encode, found, opencage, quote};
use crate::support::serve::{Served, command};
use crate::support::soon;
use crate::support::step::{Script, Step};
use crate::support::upstream::{FakeUpstream, Recorded};

/// Every spelling that must be found nowhere.
fn spellings() -> Vec<String> {
    let percent = encode(SECRET);
    let mut all =
        vec![SECRET.to_owned(), percent.to_lowercase(), SECRET.replace('/', "\\/"), SECRET.replace('+', "%2B"), percent];
    for before in ["", "k", "ke"] {
        // What base64 makes of it depends on what stands before it, less the first and the last group.
        for text in [STANDARD.encode(format!("{before}{SECRET}")), URL_SAFE_NO_PAD.encode(format!("{before}{SECRET}"))] {
            all.push(text[4..text.len() - 4].to_owned());
        }
    }
    all
}

fn clean(what: &str, text: &str) {
    for spelling in spellings() {
        assert!(!text.contains(&spelling), "{what} holds {spelling}: {text}");
    }
}

fn whole(reply: &Reply) -> String {
    format!("{:?} {}", reply.headers, reply.text())
}

/// What a provider in each sort of trouble does, by the town asked for.
fn trouble(sent: &Recorded) -> Step {
    let url = format!("http://provider{}", sent.target);
    let headers = format!("{:?}", sent.headers);
    let echo = json!({ "error": url, "raw": SECRET, "headers": headers, "base64": STANDARD.encode(&url) });
    let town = format!("{}{}", sent.target, sent.text());
    let (_, fault) = town.split_once("Fault-").unwrap_or_default();
    let name: String = fault.chars().take_while(char::is_ascii_alphanumeric).collect();
    match name.as_str() {
        "hang" => Step::hang(),
        "close" => Step::close(),
        "cut" => Step::cut(20),
        "400" | "404" | "410" | "403" | "429" | "500" => Step::ok(echo).status(name.parse().unwrap()),
        "html" => Step::ok(json!({})).header("content-type", "text/html").body(format!("<a href=\"{url}\">{SECRET}</a>")),
        "redirect" => Step::ok(echo).status(302).header("location", url),
        "garbled" => Step::raw(format!("HTTP/1.1 200 {SECRET}\r\nX-{SECRET}: {url}\r\n{url}\r\n\r\n")),
        "header" => {
            let kind = format!("application/json; url=\"{url}\"");
            Step::ok(found()).header("content-type", kind).header("content-language", SECRET).header("retry-after", SECRET)
        }
        "echo" => {
            let mut answer = found();
            answer["routes"] = json!([{ "distanceMeters": 1, "duration": url }]);
            answer["request"] = echo;
            answer["half"] = json!(SECRET.replace('+', "%2B"));
            answer["lower"] = json!(encode(SECRET).to_lowercase());
            answer["twice"] = json!(STANDARD.encode(format!("key={SECRET}")));
            answer["thrice"] = json!(URL_SAFE_NO_PAD.encode(format!("?k={SECRET}&")));
            Step::ok(json!({})).body(answer.to_string().replace("provider/", "provider\\/"))
        }
        other => panic!("no such fault: {other}"),
    }
}

const FAULTS: [&str; 15] =
    ["hang", "close", "cut", "400", "404", "410", "403", "429", "500", "html", "redirect", "garbled", "header", "echo", "echo"];

/// The upstream under five providers: sound, absent, nameless, without TLS; and one whose key goes in a header.
fn setup() -> Setup {
    let mut body = String::new();
    for (name, url) in [
        ("sound", "{upstream}"),
        ("absent", "http://127.0.0.1:1"),
        ("nameless", "https://nowhere.invalid"),
        ("plain", "{upstream-tls}"),
    ] {
        body += &format!(
            "[providers.{name}]\npreset = \"opencage\"\nbase_url = \"{url}\"\nkey = \"{{secret}}\"\nprice = \"0.005 USD\"\n\
             timeout = \"700ms\"\nretry = {{ attempts = 1 }}\nbreaker = {{ failures = 1000 }}\n\
             [routes.{name}]\nprovider = \"{name}\"\noperation = \"geocode\"\nexpose = \"GET /{name}\"\nbudget = \"none\"\n"
        );
    }
    let google = quote("timeout = \"700ms\"\nbreaker = { failures = 1000 }", "").body;
    Setup::new(body + &google)
}

async fn everything(served: &Served, client: &Client) {
    let mut asks = Vec::new();
    for fault in FAULTS {
        asks.push(format!("/sound?q=Fault-{fault}"));
        asks.push(format!("/v1/quote?from=Fault-{fault}&to=Delhi"));
    }
    asks.extend(["absent", "nameless", "plain"].map(|route| format!("/{route}?q=Lyon")));
    asks.push(format!("/sound?q={}", encode(SECRET)).replace(&encode(SECRET), "Fault-echo"));
    let mut refused = 0;
    for path in asks {
        let reply = client.get(&path).await;
        clean(&path, &whole(&reply));
        refused += usize::from(reply.status != 200);
    }
    assert!(refused >= 20, "{refused}");
    for path in ["/metrics", "/v1/status", "/v1/routes", "/v1/switches/all", "/readyz"] {
        clean(path, &whole(&served.admin.get(path).await));
    }
}

#[tokio::test]
async fn x_01_the_key_is_in_no_answer_no_log_and_no_metric() {
    let upstream = FakeUpstream::start(Script::by(trouble)).await;
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup();
    setup.body = setup.body.replace("{upstream-tls}", &upstream.url().replace("http:", "https:"));
    for filter in ["trace", "trace,hyper::proto=trace,hyper_util::client=trace,reqwest::connect=trace,h2::codec=trace"] {
        let served = setup
            .serve_as(dir.path(), &upstream.url(), |dir| {
                let mut command = command(dir);
                command.env("TOLLGATE_LOG", filter);
                command
            })
            .await;
        everything(&served, &served.client).await;
        served.signal("TERM");
        let (status, log) = served.ended().await;
        assert_eq!(status.code(), Some(0));
        assert!(log.contains("outcome") && log.lines().count() > 30, "{log}");
        clean("the log", &log);
        // What other crates would say at these levels is theirs to choose, and may be a URL with the key tomorrow.
        let theirs = |line: &&str| {
            [" TRACE ", " DEBUG ", " INFO "].iter().any(|level| line.contains(level)) && !line.contains(" tollgate::")
        };
        assert_eq!(log.lines().find(theirs), None, "with {filter}");
    }
    // The provider did get it, each time, in the query or in the header.
    let sent = upstream.requests();
    let key = format!("key={}", encode(SECRET));
    assert!(sent.iter().all(|sent| sent.target.contains(&key) || sent.header("x-goog-api-key") == Some(SECRET)));
}

#[tokio::test]
async fn x_01_the_commands_hide_it_too() {
    let dir = tempfile::tempdir().unwrap();
    let mut setup = setup();
    setup.body = setup.body.replace("{upstream-tls}", "https://127.0.0.1:1");
    std::fs::write(dir.path().join("tollgate.toml"), setup.render(dir.path(), "http://127.0.0.1:1")).unwrap();
    for arguments in [
        vec!["check"],
        vec!["explain", "GET", "http://gate/sound?q=Lyon", "-H", "x-api-key: caller-key"],
        vec!["explain", "GET", "http://gate/v1/quote?from=Delhi&to=Agra", "-H", "x-api-key: caller-key"],
    ] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.arg(arguments[0]).arg("-c").arg(dir.path().join("tollgate.toml")).args(&arguments[1..]);
        let output = soon("the command", tokio::task::spawn_blocking(move || command.output())).await.unwrap().unwrap();
        let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{said}");
        clean(&format!("{arguments:?}"), &said);
    }
}

#[tokio::test]
async fn x_02_a_redirect_is_followed_nowhere() {
    let elsewhere = FakeUpstream::start(Step::ok(found())).await;
    let places = [
        format!("{}/?key=x", elsewhere.url()),
        "http://169.254.169.254/latest/".to_owned(),
        format!("http://[::ffff:127.0.0.1]:{}/", elsewhere.addr().port()),
        "/elsewhere".to_owned(),
        format!("//{}/", elsewhere.addr()),
    ];
    for status in [301, 302, 303, 307, 308] {
        for place in &places {
            let step = Step::ok(json!({ "routes": [{ "distanceMeters": 1 }] })).status(status).header("location", place.as_str());
            let upstream = FakeUpstream::start(step).await;
            let breaker = "breaker = { failures = 2, cooldown = \"30s\" }";
            let gate = quote(breaker, "").start(&upstream).await;
            for code in ["upstream_failed", "upstream_failed", "circuit_open"] {
                let reply = gate.get("/v1/quote?from=Delhi&to=Agra").await;
                assert_eq!((&reply.json()["code"], reply.header("location")), (&json!(code), None), "{status} to {place}");
                assert_eq!(reply.status, if code == "circuit_open" { 503 } else { 502 });
            }
            assert_eq!((upstream.calls(), elsewhere.calls(), gate.spent().await), (2, 0, 10_000));
        }
    }
    let upstream = FakeUpstream::start(Step::ok(found()).status(302).header("location", elsewhere.url())).await;
    let gate = opencage("", "").start(&upstream).await;
    let reply = gate.get("/geocode/v1/json?q=Lyon").await;
    assert_eq!((reply.status, reply.header("location")), (429, None));
    assert_eq!((upstream.calls(), elsewhere.calls(), gate.spent().await), (1, 0, 5_000));
}
