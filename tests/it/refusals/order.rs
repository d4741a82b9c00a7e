//! The order of the stages: of several reasons to refuse, the outermost is the one that is given, and nothing behind it is paid.

use http::Method;
use serde_json::json;

use crate::support::client::{Client, Reply};
use crate::support::gate::Setup;
use crate::support::step::{Script, Step};
use crate::support::upstream::FakeUpstream;

const CONFIG: &str = r#"
[providers.register]
base_url = "{upstream}"
price = "0.005 USD"
retry = { attempts = 1 }
breaker = { failures = 1, cooldown = "1h" }
quota = { burst = 2, rate = "1/10d" }
[routes.company]
provider = "register"
expose = "GET /company"
callers = ["web"]
budget = "none"
limits = { caller = { burst = 1, rate = "1/m" } }
lockout = { misses = 1, window = "1d", first = "12h", max = "1d" }
cache = { found = "1h" }
[routes.company.question]
number = { in = "query", type = "code", pattern = "[0-9]+", required = true }
[routes.other]
provider = "register"
expose = "GET /other"
budget = "none"
[routes.other.question]
number = { in = "query", type = "code", required = true }
"#;

fn line(stage: &str, reply: &Reply) -> String {
    let code = reply.json()["code"].as_str().unwrap_or("-").to_owned();
    format!("{stage:<14} {} {code}", reply.status)
}

#[tokio::test]
async fn of_several_reasons_the_outermost_is_given() {
    let upstream = FakeUpstream::start(Script::by(|asked| match asked.target.as_str() {
        "/other?number=1" => Step::ok(json!({})).status(500),
        "/company?number=0" => Step::ok(json!({})).status(404),
        _ => Step::ok(json!({ "name": "Acme" })),
    }))
    .await;
    let gate = Setup::new(CONFIG).start(&upstream).await;
    let (web, other, stranger) = (gate.client.clone(), gate.other(), gate.stranger());
    // Everything is made to refuse: the caller is locked and has no token left, the breaker is open, the quota is used up.
    assert_eq!(web.get("/company?number=0").await.status, 404);
    assert_eq!(web.get("/other?number=1").await.status, 502);
    let bill = (upstream.calls(), gate.spent().await);
    assert_eq!(bill, (2, 10_000));
    gate.switch("company", "off").await;

    let mut seen = Vec::new();
    let mut step = async |stage: &str, client: &Client, path: &str| seen.push(line(stage, &client.get(path).await));
    // From here on one reason is taken away at a time, from the outside in.
    step("router", &stranger, "/nothing?number=!&x=1").await;
    step("kill_switch", &stranger, "/company?number=!&x=1").await;
    gate.switch("company", "on").await;
    step("authenticate", &stranger, "/company?number=!&x=1").await;
    step("authenticate", &other, "/company?number=!&x=1").await;
    step("validate", &web, "/company?number=!&x=1").await;
    step("validate", &web, "/company?number=!").await;
    step("limits", &web, "/company?number=2").await;
    gate.advance(60);
    step("lockout", &web, "/company?number=2").await;
    let cleared = gate.admin.send(Method::DELETE, "/v1/lockouts/company/web", bytes::Bytes::new()).await;
    assert_eq!(cleared.status, 204);
    gate.advance(60);
    step("cache", &web.clone().with("cache-control", "only-if-cached"), "/company?number=2").await;
    gate.advance(60);
    step("breaker", &web, "/company?number=2").await;
    gate.advance(3_600);
    step("budget", &web, "/company?number=2").await;
    assert_eq!((upstream.calls(), gate.spent().await), bill, "no refusal reached the provider");
    gate.advance(11 * 86_400);
    step("upstream", &web, "/company?number=2").await;
    insta::assert_snapshot!("order", seen.join("\n"));
    assert_eq!((upstream.calls(), gate.spent().await), (3, 15_000));
}
