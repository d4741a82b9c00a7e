//! Messages.

use serde_json::{Value, json};

use super::{basic, post, said, sdk};
use crate::support::client::{Client, Reply};
use crate::support::gate::{Gate, SECRET};
use crate::support::routes::twilio;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

const SEGMENT: u64 = 7_900;
const PATH: &str = "/2010-04-01/Accounts/AC0caller/Messages.json";
const HELLO: &str = "To=%2B15005550006&From=%2B15005550001&Body=Hello+there";

fn sent() -> Step {
    Step::ok(json!({ "sid": "SM1", "status": "queued", "num_segments": "1", "price": null })).status(201)
}

fn failed(status: u16, code: u32) -> Step {
    Step::ok(json!({ "code": code, "message": "no", "more_info": "https://x", "status": status })).status(status)
}

/// As Twilio's clients authenticate: the account and its token, which is the caller's key here.
fn client(gate: &Gate) -> Client {
    sdk(gate, |key| basic("AC0caller", key))
}

async fn send(client: &Client, key: &str, form: &str) -> Reply {
    post(client, key, PATH, form).await
}

#[tokio::test]
async fn what_the_sdk_sends_goes_out_with_our_token_and_nothing_else_of_the_caller() {
    let upstream = FakeUpstream::start(sent()).await;
    let gate = twilio("", "").start(&upstream).await;
    let sdk =
        client(&gate).with("user-agent", "twilio-python/9.13.0").with("accept-charset", "utf-8").with("x-twilio-client", "x");
    let form = "To=%2B15005550006&MaxPrice=0.05&ProvideFeedback=True&ValidityPeriod=600&SendAt=2026-12-01T09%3A30%3A00Z\
                &From=%2B15005550001&Body=Hello+World%0A%F0%9F%91%8B+100%25&MediaUrl=https%3A%2F%2Fa.example%2F1%2C2.png&MediaUrl=https%3A%2F%2Fa.example%2F3.png";
    let first = send(&sdk, "k", form).await;
    assert_eq!((first.status, first.json()["sid"].as_str()), (201, Some("SM1")), "{first:?}");
    let last = upstream.last();
    assert_eq!((last.method.as_str(), last.target.as_str()), ("POST", PATH));
    let mut pairs: Vec<&str> = std::str::from_utf8(&last.body).unwrap().split('&').collect();
    pairs.sort_unstable();
    assert_eq!(
        pairs,
        [
            "Body=Hello%20World%0A%F0%9F%91%8B%20100%25",
            "From=%2B15005550001",
            "MaxPrice=0.05",
            "MediaUrl=https%3A%2F%2Fa.example%2F1%2C2.png",
            "MediaUrl=https%3A%2F%2Fa.example%2F3.png",
            "ProvideFeedback=true",
            "SendAt=2026-12-01T09%3A30%3A00Z",
            "To=%2B15005550006",
            "ValidityPeriod=600",
        ]
    );
    assert_eq!(last.header("authorization"), Some(basic("AC0caller", SECRET).as_str()));
    assert_eq!(last.header("content-type"), Some("application/x-www-form-urlencoded"));
    for name in ["x-twilio-client", "accept-charset", "idempotency-key"] {
        assert_eq!(last.header(name), None, "{name}");
    }
    assert_eq!(said(&send(&sdk, "k", form).await), (201, String::new(), true));
    assert_eq!((upstream.calls(), gate.spent().await), (1, SEGMENT));
}

#[tokio::test]
async fn an_account_of_ours_stands_for_whatever_the_caller_writes() {
    let dir = tempfile::tempdir().unwrap();
    let secret = |user: &str| {
        std::fs::write(dir.path().join(user), format!("{user}:t0ken/of+ours")).unwrap();
        format!("key = \"file:{}/{user}\"", dir.path().display())
    };
    for (provider, account, user, password) in [
        ("account = \"AC0ours\"".to_owned(), "AC0ours", "AC0ours", SECRET),
        (secret("AC0ours"), "AC0ours", "AC0ours", "t0ken/of+ours"),
        (format!("{}\naccount = \"AC0ours\"", secret("SK0key")), "AC0ours", "SK0key", "t0ken/of+ours"),
    ] {
        let echo = Step::ok(json!({ "code": 21211, "token": [password, basic(user, password)], "status": 400 })).status(400);
        let upstream = FakeUpstream::start([sent(), echo]).await;
        let gate = twilio(&provider, "").start(&upstream).await;
        assert_eq!(send(&client(&gate), "k", HELLO).await.status, 201, "{provider}");
        assert_eq!(upstream.last().target, format!("/2010-04-01/Accounts/{account}/Messages.json"));
        assert_eq!(upstream.last().header("authorization"), Some(basic(user, password).as_str()), "{provider}");
        // What is not sent tells no message from another.
        let elsewhere = post(&client(&gate), "k", "/2010-04-01/Accounts/AC0other/Messages.json", HELLO).await;
        assert_eq!(said(&elsewhere), (201, String::new(), true));
        let odd = post(&client(&gate), "odd", "/2010-04-01/Accounts/..%3Bx/Messages.json", HELLO).await;
        assert_eq!(odd.status, 404, "{odd:?}");
        let odd = post(&client(&gate), "odd", "/2010-04-01/Accounts/AC%3A1/Messages.json", HELLO).await;
        assert_eq!((odd.status, odd.code().as_str()), (400, "invalid_question"));
        let echoed = send(&client(&gate), "echo", HELLO).await.text();
        assert!(echoed.contains("21211") && !echoed.contains(password) && !echoed.contains(&basic(user, password)), "{echoed}");
        assert_eq!((upstream.calls(), gate.spent().await), (2, SEGMENT));
    }
}

#[tokio::test]
async fn a_message_costs_its_segments() {
    let upstream = FakeUpstream::start(sent()).await;
    let gate = twilio("", "max_price = \"0.02 USD\"").start(&upstream).await;
    let body = |text: &str| format!("To=%2B15005550006&MessagingServiceSid=MG1&Body={text}");
    assert_eq!(send(&client(&gate), "two", &body(&"a".repeat(161))).await.status, 201);
    assert_eq!(gate.spent().await, 2 * SEGMENT);
    assert_eq!(send(&client(&gate), "smile", &body(&format!("{}%F0%9F%91%8B", "a".repeat(69)))).await.status, 201);
    assert_eq!(gate.spent().await, 4 * SEGMENT);
    let dear = send(&client(&gate), "three", &body(&"a".repeat(307))).await;
    assert_eq!((dear.status, dear.code().as_str(), dear.json()["status"].as_u64()), (400, "cost_too_high", Some(400)));
    assert_eq!((upstream.calls(), gate.spent().await), (2, 4 * SEGMENT));
}

/// Media make a message dearer than its segments: a route may take none.
#[tokio::test]
async fn a_route_may_leave_fields_out_or_always_send_them() {
    let upstream = FakeUpstream::start(sent()).await;
    let media = format!("{HELLO}&MediaUrl=https%3A%2F%2Fa.example%2F1.png");
    let gate = twilio("", "question = { MediaUrl = false, SendAsMms = false }").start(&upstream).await;
    assert_eq!(send(&client(&gate), "media", &media).await.code(), "unknown_field");
    assert_eq!(send(&client(&gate), "text", HELLO).await.status, 201);
    assert_eq!(send(&client(&gate), "neither", "To=%2B15005550006&From=x").await.code(), "invalid_question");
    assert_eq!(upstream.calls(), 1);

    let gate = twilio("", "pinned = { From = { in = \"form\", value = \"+15005550001\" } }").start(&upstream).await;
    assert_eq!(send(&client(&gate), "text", "To=%2B15005550006&Body=Hi").await.status, 201);
    assert!(upstream.last().text().contains("From=%2B15005550001"), "{}", upstream.last().text());
    assert_eq!(send(&client(&gate), "neither", "To=%2B15005550006").await.code(), "invalid_question");
    assert_eq!(upstream.calls(), 2);
}

#[tokio::test]
async fn a_dear_prefix_is_refused_before_anything_is_sent() {
    let upstream = FakeUpstream::start(sent()).await;
    let price = "price = { table = [{ prefix = \"+1\", price = \"0.0079 USD\" }], otherwise = \"0.10 USD\" }";
    let gate = twilio(price, "max_price = \"0.05 USD\"").start(&upstream).await;
    let to = |number: &str| format!("To={number}&From=%2B15005550001&Body=Hi");
    for number in ["%2B882161234567", "00882%2016%20123-4567", "%2B979123456789"] {
        assert_eq!(send(&client(&gate), "dear", &to(number)).await.code(), "cost_too_high", "{number}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
    assert_eq!(send(&client(&gate), "cheap", &to("%2B1%20500%20555%200006")).await.status, 201);
    assert_eq!((upstream.calls(), gate.spent().await), (1, SEGMENT));
}

#[tokio::test]
async fn one_number_has_one_bucket_however_it_is_spelt() {
    let upstream = FakeUpstream::start(sent()).await;
    let gate = twilio("", "limits_by = { To = { burst = 3, rate = \"3/h\" } }").start(&upstream).await;
    let mut codes = Vec::new();
    for (key, number) in
        ["%2B442079460958", "00442079460958", "%2B44+(0)20+7946-0958", "%2B44.20.7946.0958"].into_iter().enumerate()
    {
        let client = if key % 2 == 0 { client(&gate) } else { gate.other() };
        codes.push(send(&client, &key.to_string(), &format!("To={number}&From=x&Body=Hi")).await.code());
        assert!(upstream.last().text().contains("To=%2B442079460958"), "{number}");
    }
    assert_eq!(codes, ["", "", "", "slow_down"]);
    assert_eq!(send(&client(&gate), "other", HELLO).await.status, 201);
    assert_eq!((upstream.calls(), gate.spent().await), (4, 4 * SEGMENT));
}

#[tokio::test]
async fn what_twilio_was_too_busy_for_is_sent_again() {
    let upstream = FakeUpstream::start([failed(429, 20429), failed(429, 20429), sent()]).await;
    let gate = twilio("retry = { attempts = 3, base = \"1ms\" }", "").start(&upstream).await;
    assert_eq!(said(&send(&client(&gate), "k", HELLO).await), (201, String::new(), false));
    assert_eq!(said(&send(&client(&gate), "k", HELLO).await), (201, String::new(), true));
    assert_eq!((upstream.calls(), gate.spent().await), (3, SEGMENT));
}

#[tokio::test]
async fn twilios_error_is_about_the_message_or_about_us() {
    for (status, code) in [(400, 21211), (400, 21610), (403, 21408), (403, 21608), (400, 20001)] {
        let upstream = FakeUpstream::start([failed(status, code), sent()]).await;
        let gate = twilio("", "").start(&upstream).await;
        for replayed in [false, true] {
            let reply = send(&client(&gate), "k", HELLO).await;
            assert_eq!(said(&reply), (status, String::new(), replayed), "{code}");
            assert_eq!(reply.json()["code"], code);
        }
        assert_eq!((upstream.calls(), gate.spent().await), (1, 0), "{code}");
    }
    for (status, code) in [(401, 20003), (403, 20003), (403, 20006), (400, 20005), (404, 20404), (403, 20403)] {
        let upstream = FakeUpstream::start([failed(status, code), sent()]).await;
        let gate = twilio("", "").start(&upstream).await;
        let denied = send(&client(&gate), "k", HELLO).await;
        assert_eq!(
            (denied.status, denied.code().as_str(), &denied.json()["code"]),
            (502, "upstream_denied", &json!(20502)),
            "{code}"
        );
        assert_eq!(said(&send(&client(&gate), "k", HELLO).await), (201, String::new(), false), "{code}");
        assert_eq!((upstream.calls(), gate.spent().await), (2, SEGMENT), "{code}");
    }
}

#[tokio::test]
async fn b_03_what_may_be_a_message_already_is_not_sent_again() {
    for (step, status) in [(Step::close(), 502), (failed(500, 20500), 502), (failed(503, 20503), 502), (Step::hang(), 504)] {
        let upstream = FakeUpstream::start([step, sent()]).await;
        let gate = twilio("timeout = \"300ms\"\nretry = { attempts = 3, base = \"1ms\" }", "").start(&upstream).await;
        let first = send(&client(&gate), "k", HELLO).await;
        assert_eq!(said(&first), (status, "outcome_unknown".into(), false));
        assert_eq!((&first.json()["code"], &first.json()["status"]), (&json!(20_000 + status), &json!(status)));
        assert_eq!(said(&send(&client(&gate), "k", HELLO).await), (409, "outcome_unknown".into(), false));
        assert_eq!((upstream.calls(), gate.spent().await), (1, SEGMENT));
    }
}

/// Twilio's clients send no key: equal messages are one then, if the route says so.
#[tokio::test]
async fn without_a_key_the_message_itself_may_be_it() {
    let upstream = FakeUpstream::start(sent()).await;
    let gate = twilio("", "").start(&upstream).await;
    let refused: Value = client(&gate).form(PATH, HELLO).await.json();
    assert_eq!((&refused["code"], &refused["status"]), (&json!(20400), &json!(400)));
    let gate = twilio("", "writes = { key = \"question\" }").start(&upstream).await;
    for (form, replayed) in [
        (HELLO, false),
        ("From=%2B15005550001&Body=Hello%20there&To=001-500-555-0006", true),
        ("To=%2B15005550006&From=%2B15005550001&Body=hello+there", false),
    ] {
        assert_eq!(said(&client(&gate).form(PATH, form).await), (201, String::new(), replayed), "{form}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (2, 2 * SEGMENT));
}

#[tokio::test]
async fn what_is_no_message_is_refused_as_twilio_would() {
    let upstream = FakeUpstream::start(sent()).await;
    let gate = twilio("", "").start(&upstream).await;
    let long = format!("To=%2B15005550006&From=x&Body={}", "a".repeat(1_601));
    for (form, code) in [
        ("To=%2B15005550006&From=x", "invalid_question"),
        ("To=%2B15005550006&Body=x", "invalid_question"),
        ("From=x&Body=x", "invalid_question"),
        ("To=5550006&From=x&Body=x", "invalid_question"),
        ("To=%2B15005550006&From=x&Body=%00", "invalid_question"),
        ("To=%2B15005550006&To=%2B15005550006&From=x&Body=x", "duplicate_field"),
        ("To=%2B15005550006&From=x&Body=x&Bdoy=x", "unknown_field"),
        (&long, "invalid_question"),
    ] {
        let refused = send(&client(&gate), "k", form).await;
        assert_eq!((refused.status, refused.code().as_str(), refused.json()["code"].is_u64()), (400, code, true), "{form}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}
