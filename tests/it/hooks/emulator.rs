//! Google's own Pub/Sub emulator, where it is installed (`gcloud components install pubsub-emulator`, or the package
//! google-cloud-cli-pubsub-emulator): its envelope, its idea of an acknowledgement, its redelivery.
//!
//! It signs nothing, so that a relay between it and the gateway adds the token. Where it is not installed the test says so and ends:
//! it is 100 MB of Java that nothing else here needs.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::watch;

use super::*;
use crate::support::port::HeldPort;
use crate::support::wire::{Framing, Wire};
use crate::support::{HANG, soon};

/// The emulator. Dropping it kills it.
struct Emulator {
    child: Child,
    client: Client,
    _port: HeldPort,
}

impl Drop for Emulator {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Emulator {
    /// Starts it, if it is there.
    async fn start() -> Option<Self> {
        let told = Command::new("gcloud").args(["info", "--format=value(installation.sdk_root)"]).stderr(Stdio::null()).output();
        let root = String::from_utf8(told.ok()?.stdout).ok()?;
        let program = std::path::Path::new(root.trim()).join("platform/pubsub-emulator/bin/cloud-pubsub-emulator");
        if root.trim().is_empty() || !program.exists() {
            return None;
        }
        let port = HeldPort::free();
        let mut command = Command::new(program);
        command.args(["--host=127.0.0.1".to_owned(), format!("--port={}", port.addr().port())]).env("JAVA_OPTS", "-Xmx128m");
        let child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let client = Client::new(format!("http://{}", port.addr()));
        let emulator = Self { child, client, _port: port };
        emulator.listens().await;
        Some(emulator)
    }

    /// Waits longer than for anything else: a Java machine starts slowly beside many tests.
    async fn listens(&self) {
        let up = async {
            while self.client.try_send(http::Method::GET, "/", "".into()).await.map_or(0, |reply| reply.status) != 200 {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(HANG * 5, up).await.expect("the emulator to listen");
    }

    async fn ask(&self, method: http::Method, path: &str, json: Json) {
        let client = self.client.clone().with("content-type", "application/json");
        let reply = client.send(method, &format!("/v1/projects/p/{path}"), json.to_string().into()).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }

    async fn publish(&self, data: &str) {
        let attributes = json!({ "billingAccountId": "A", "budgetId": BUDGET, "schemaVersion": "1.0" });
        let message = json!({ "messages": [{ "data": BASE64.encode(data), "attributes": attributes }] });
        self.ask(http::Method::POST, "topics/budgets:publish", message).await;
    }
}

/// What the emulator was answered, in order.
type Answers = watch::Receiver<Vec<u16>>;

/// Passes each push on with a token.
async fn relay(to: Client, token: String) -> (SocketAddr, Answers) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    let (sender, answers) = watch::channel(Vec::new());
    let to = to.with("authorization", &format!("Bearer {token}"));
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (to, sender) = (to.clone(), sender.clone());
            tokio::spawn(async move {
                let mut wire = Wire::new(stream);
                while let Ok(Some(head)) = wire.head().await {
                    let body = wire.body(head.framing().unwrap_or(Framing::Length(0))).await.unwrap();
                    let status = to.send(http::Method::POST, "/google-budget", body.into()).await.status;
                    sender.send_modify(|answers| answers.push(status));
                    let length = if status == 204 { "" } else { "Content-Length: 0\r\n" };
                    if wire.send(format!("HTTP/1.1 {status} Answer\r\n{length}\r\n")).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    (addr, answers)
}

async fn answered(answers: &mut Answers, count: usize) -> Vec<u16> {
    soon("the emulator's push", answers.wait_for(|answers| answers.len() >= count)).await.unwrap().clone()
}

#[tokio::test]
async fn the_emulators_pushes_are_understood_and_acknowledged() {
    let Some(emulator) = Emulator::start().await else {
        eprintln!("not tested: Google's Pub/Sub emulator is not installed (gcloud components install pubsub-emulator)");
        return;
    };
    let (_upstream, gate) = start(hooked("").store(SQLITE)).await;
    let (addr, mut answers) = relay(hooks_of(&gate), sign(&claims(&gate.clock))).await;
    emulator.ask(http::Method::PUT, "topics/budgets", json!({})).await;
    let endpoint = json!({
        "topic": "projects/p/topics/budgets", "ackDeadlineSeconds": 10,
        "pushConfig": { "pushEndpoint": format!("http://{addr}/google-budget") },
    });
    emulator.ask(http::Method::PUT, "subscriptions/gate", endpoint).await;

    emulator.publish(&notice(NOVEMBER, "99.99", "100.0")).await;
    assert_eq!((answered(&mut answers, 1).await, state(&gate).await), (vec![204], "on".into()));
    emulator.publish("no notice").await;
    assert_eq!(answered(&mut answers, 2).await, [204, 204]);

    // The store is away: what is refused comes again, until it is taken.
    let lock = rusqlite::Connection::open(gate.dir.path().join("tollgate.db")).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    emulator.publish(&notice(NOVEMBER, "100.0", "100.0")).await;
    assert_eq!(answered(&mut answers, 3).await[..3], [204, 204, 503]);
    drop(lock);
    soon("the redelivery", answers.wait_for(|answers| answers.last() == Some(&204))).await.unwrap();
    assert_eq!((state(&gate).await.as_str(), counted(&gate, "stopped").await), ("cached", 1));
    assert_eq!((counted(&gate, "below").await, counted(&gate, "malformed").await), (1, 1));
}
