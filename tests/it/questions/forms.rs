//! Forms that are written: texts as they stand, lists that are repeated, and the rest that nobody has described.

use serde_json::json;

use super::problem;
use crate::support::client::{Client, Reply};
use crate::support::routes::form;
use crate::support::step::Step;
use crate::support::upstream::FakeUpstream;

async fn upstream() -> FakeUpstream {
    FakeUpstream::start(Step::ok(json!({ "id": 1 }))).await
}

async fn send(client: &Client, key: &str, body: &str) -> Reply {
    client.clone().with("idempotency-key", key).form("/form", body).await
}

fn is_replay(reply: &Reply) -> bool {
    reply.status == 200 && reply.header("idempotent-replayed") == Some("true")
}

#[tokio::test]
async fn a_text_is_sent_as_it_was_written() {
    let upstream = upstream().await;
    let gate = form("", "body = { in = \"form\", type = \"string\", max = 12, required = true }").start(&upstream).await;
    for (key, body, sent) in [
        ("spaces", "body=+Hi++you%0A%0D%0A%09", "body=%20Hi%20%20you%0A%0D%0A%09"),
        ("emoji", "body=%F0%9F%91%8B%F0%9F%8F%BD", "body=%F0%9F%91%8B%F0%9F%8F%BD"),
        ("invisible", "body=a%E2%80%8Bb%C2%A0", "body=a%E2%80%8Bb%C2%A0"),
        ("decomposed", "body=e%CC%81", "body=e%CC%81"),
        ("wide", "body=%EF%BC%A1%C2%BD", "body=%EF%BC%A1%C2%BD"),
    ] {
        assert_eq!(send(&gate.client, key, body).await.status, 200, "{key}");
        assert_eq!(upstream.last().text(), sent, "{key}");
        assert!(is_replay(&send(&gate.client, key, body).await), "{key}");
    }
    // Case and spaces are what it says.
    for other in ["body=Hi++you%0A%0D%0A%09", "body=+hi++you%0A%0D%0A%09", "body=+Hi+you%0A%0D%0A%09"] {
        assert_eq!(send(&gate.client, "spaces", other).await.code(), "idempotency_key_reused", "{other}");
    }
    let long = "%F0%9F%91%8B".repeat(12);
    assert_eq!(send(&gate.client, "long", &format!("body={long}")).await.status, 200);
    for wrong in ["body=a%00", "body=%1B[2J", "body=%08", "body=%FF", "body=", &format!("body={long}x"), "body=a&body=b"] {
        let reply = send(&gate.client, "wrong", wrong).await;
        assert_eq!(reply.status, 400, "{wrong}: {reply:?}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (6, 30_000));
}

#[tokio::test]
async fn a_list_without_a_separator_is_a_parameter_an_element() {
    let upstream = upstream().await;
    let question = "url = { in = \"form\", type = \"list\", of = { type = \"string\", max = 50 }, separator = \"\" }";
    let gate = form("", question).start(&upstream).await;
    assert_eq!(send(&gate.client, "k", "url=http://a/?b,c&url=d").await.status, 200);
    assert_eq!(upstream.last().text(), "url=http%3A%2F%2Fa%2F%3Fb%2Cc&url=d");
    assert!(is_replay(&send(&gate.client, "k", "url=http%3A%2F%2Fa%2F%3Fb%2Cc&url=&url=d").await));
    for other in ["url=http://a/?b&url=c&url=d", "url=d&url=http://a/?b,c", "url=http://a/?b,c,d"] {
        assert_eq!(send(&gate.client, "k", other).await.code(), "idempotency_key_reused", "{other}");
    }
    assert_eq!((upstream.calls(), gate.spent().await), (1, 5_000));
}

const REST: &str = "amount = { in = \"form\", type = \"integer\", required = true }\n\
                    others = { in = \"form\", type = \"rest\" }\n\
                    [routes.form.pinned]\nsource = { in = \"form\", value = \"web\" }\n\
                    [routes.form.ignored]\nform = [\"trace\"]";

#[tokio::test]
async fn the_rest_of_a_form_is_sent_as_it_came() {
    let upstream = upstream().await;
    let gate = form("", REST).start(&upstream).await;
    let body = "metadata[order]=1&amount=10&trace=x&expand[]=b&expand[]=a&note=+%26&empty=&source=web";
    assert_eq!(send(&gate.client, "k", body).await.status, 200);
    let sent = "amount=10&metadata%5Border%5D=1&expand%5B%5D=b&expand%5B%5D=a&note=%20%26&empty=&source=web";
    assert_eq!(upstream.last().text(), sent);
    let same = "empty=&note=%20%26&amount=10.0&expand%5B%5D=b&expand[]=a&metadata%5Border%5D=1&trace=y";
    assert!(is_replay(&send(&gate.client, "k", same).await), "neither order nor encoding counts");
    for other in [
        "metadata[order]=2&amount=10&expand[]=b&expand[]=a&note=+%26&empty=",
        "metadata[order]=1&amount=10&expand[]=a&expand[]=b&note=+%26&empty=",
        "metadata[order]=1&amount=10&expand[]=b&expand[]=a&note=+%26",
        "metadata[order]=1&amount=10&expand[]=b&expand[]=a&expand[]=a&note=+%26&empty=",
        "amount=10",
    ] {
        assert_eq!(send(&gate.client, "k", other).await.code(), "idempotency_key_reused", "{other}");
    }
    assert_eq!(send(&gate.client, "bare", "amount=10").await.status, 200);
    assert_eq!(upstream.last().text(), "amount=10&source=web");
    assert_eq!((upstream.calls(), gate.spent().await), (2, 10_000));
}

#[tokio::test]
async fn the_rest_is_not_what_others_claim_nor_what_no_form_holds() {
    let upstream = upstream().await;
    let gate = form("", REST).start(&upstream).await;
    for (body, code, field) in [
        ("x=1", "invalid_question", "amount"),
        ("amount=10&amount=11", "duplicate_field", "amount"),
        ("amount=10&source=app", "invalid_question", "source"),
        ("amount=10&x=%00", "invalid_question", "others"),
        ("amount=10&%1Bx=1", "invalid_question", "others"),
        ("amount=10&=1", "invalid_question", "others"),
        ("amount=10&x=%ff", "invalid_question", "body"),
    ] {
        assert_eq!(problem(&send(&gate.client, "k", body).await), (400, code.into(), field.into()), "{body}");
    }
    let query = gate.client.form("/form?x=1", "amount=10").await;
    assert_eq!(problem(&query), (400, "unknown_field".into(), "x".into()));
    assert_eq!((upstream.calls(), gate.spent().await), (0, 0));
}
