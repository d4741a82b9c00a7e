//! `tollgate demo`: gateway and sandbox in one process, with a live bill.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;

use super::admin::Client;
use super::bill::{self, Asked};
use super::serve::{Signals, end};
use crate::clock::Clock;
use crate::config::Config;
use crate::sandbox::{Options, Sandbox};
use crate::server::{self, Source};

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Where the gateway listens.
    #[arg(long, default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Where the admin API listens.
    #[arg(long, default_value = "127.0.0.1:9099")]
    admin: SocketAddr,
}

const ADMIN_TOKEN: &str = "demo-admin";

/// How often the bill is looked at.
const LOOK: Duration = Duration::from_millis(500);

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut signals = Signals::install()?;
    let sandbox = Sandbox::start(Options { listen: SocketAddr::from(([127, 0, 0, 1], 0)), script: None })?;
    // SQLite in a directory that goes with the process: the store the gateway has by default, and no files left behind.
    let directory = Directory::new()?;
    let config = config(arguments, sandbox.addr(), &directory)?;
    let running = server::start(config, Clock::system(), Source::built_in()).await?;
    super::serve::print_listeners(&running);
    println!("listening role=sandbox addr={}", sandbox.addr());
    let gateway = running.gateway.first().copied().unwrap_or(arguments.listen);
    print_guide(gateway, running.admin, sandbox.addr());
    let ledger = Client::new(&running.admin.to_string(), ADMIN_TOKEN)?;
    let mut seen = None;
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            () = signals.end() => break,
            _ = look.tick() => {
                // Between two looks the store may be busy: then the bill is what it was.
                let Ok(bill) = bill::fetch(&ledger, &Asked::today()).await else { continue };
                if seen.as_ref() != Some(&bill) {
                    println!("{}", bill::table::render(&bill));
                    seen = Some(bill);
                }
            }
        }
    }
    let emergency = running.emergency();
    let code = end(running, &emergency, &mut signals).await;
    sandbox.stop().await;
    Ok(code)
}

fn config(arguments: &Arguments, sandbox: SocketAddr, directory: &Directory) -> anyhow::Result<Config> {
    let source = include_str!("../../config/demo.toml")
        .replace("127.0.0.1:8080", &arguments.listen.to_string())
        .replace("127.0.0.1:9099", &arguments.admin.to_string())
        .replace("127.0.0.1:9100", &sandbox.to_string())
        .replace("sqlite:demo.db", &format!("sqlite:{}", directory.0.join("demo.db").display()))
        .replace("env:DEMO_KEY", &format!("file:{}", directory.secret("provider", "demo-provider-key")?.display()))
        .replace("env:DEMO_ADMIN_TOKEN", &format!("file:{}", directory.secret("admin", ADMIN_TOKEN)?.display()));
    Config::parse("config/demo.toml", &source).map_err(anyhow::Error::from)
}

fn print_guide(gateway: SocketAddr, admin: SocketAddr, sandbox: SocketAddr) {
    println!(
        "
tollgate demo: a gateway in front of sandbox providers. Nothing here costs money or leaves this machine.

A question, and the same question spelled differently: the second is a hit and costs nothing.
  curl -si 'http://{gateway}/geocode/v1/json?q=Z%C3%BCrich%2C+Switzerland&key=demo'
  curl -si 'http://{gateway}/geocode/v1/json?key=demo&q=%20z%C3%BCrich,%20%20SWITZERLAND'
A fare either way round: one call.
  curl -si 'http://{gateway}/v1/quote?from=Delhi&to=Jaipur' -H 'X-Api-Key: demo'
  curl -si 'http://{gateway}/v1/quote?to=delhi&from=JAIPUR' -H 'X-Api-Key: demo'
No such place: asked once.
  curl -si 'http://{gateway}/geocode/v1/json?q=Xyzzyplugh&key=demo'
Not a question: refused before it costs anything.
  curl -si 'http://{gateway}/geocode/v1/json?q=!&key=demo'
Twenty at once: one call.
  seq 20 | xargs -P 20 -I@ curl -s -o /dev/null 'http://{gateway}/geocode/v1/json?q=Kyoto&key=demo'
A message, sent twice under one key: the second is a replay, and the bill has one.
  for i in 1 2; do curl -si 'http://{gateway}/2010-04-01/Accounts/ACdemo/Messages.json' -u ACdemo:demo -H 'Idempotency-Key: table-4' --data-urlencode 'To=+15005550006' -d From=Tollgate -d 'Body=Your table is ready'; echo; done
Switched off, and on again.
  curl -s -X PUT http://{admin}/v1/switches/all -H 'Authorization: Bearer demo-admin' -d '{{\"state\":\"off\",\"reason\":\"demo\"}}'
  curl -s -X PUT http://{admin}/v1/switches/all -H 'Authorization: Bearer demo-admin' -d '{{\"state\":\"on\"}}'
What the providers counted, and what the gateway did.
  curl -s http://{sandbox}/meter
  curl -s http://{admin}/metrics
What was saved, by cause; and the bill, as a table or for machines (--json), by route, caller, day or cause (--by).
  curl -s 'http://{admin}/v1/savings?since=today&by=cause' -H 'Authorization: Bearer {ADMIN_TOKEN}'
  TOLLGATE_ADMIN_TOKEN={ADMIN_TOKEN} tollgate bill --admin http://{admin} --by route

The bill, as it grows (Ctrl-C ends):"
    );
}

/// A directory that is removed with all it holds.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new() -> anyhow::Result<Self> {
        let path = std::env::temp_dir().join(format!("tollgate-demo-{}", uuid::Uuid::new_v4()));
        std::fs::create_dir(&path).with_context(|| format!("cannot make {}", path.display()))?;
        Ok(Self(path))
    }

    fn secret(&self, name: &str, value: &str) -> anyhow::Result<std::path::PathBuf> {
        let path = self.0.join(name);
        std::fs::write(&path, value)?;
        Ok(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
