//! tollgate as a peer.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;

use anyhow::Result;
use sha2::{Digest, Sha256};

use super::cores;
use super::load::{self, CALLERS};
use super::peer::{Peer, free_address};
use super::upstream::Upstream;

/// How an instance is set up.
pub struct Setup<'a> {
    pub name: &'static str,
    /// Of what it logs.
    pub level: &'a str,
    /// The lines of `[store]`.
    pub store: &'a str,
    pub routes: &'a [Route],
    /// Instances that share answers have one: where an answer comes from is part of what it is.
    pub upstream: Upstream,
}

/// A route, exposed as `/NAME/v1/json`.
pub struct Route {
    pub name: &'static str,
    pub limits: bool,
}

/// Starts an instance. A log on `warn` is kept, to be shown if the start fails; others go nowhere.
pub fn start(directory: &Path, setup: Setup<'_>) -> Result<Peer> {
    let address = free_address()?;
    let [file, log] = ["toml", "log"].map(|ending| directory.join(format!("{}.{ending}", setup.name)));
    fs::write(&file, config(&setup, address)?)?;
    let mut command = cores::on(cores::SERVER, Path::new(env!("CARGO_BIN_EXE_tollgate")));
    command.args(["serve", "-c"]).arg(&file);
    command.env("TOLLGATE_LOG", setup.level).env("OPENCAGE_KEY", "0123456789abcdef0123456789abcdef");
    if setup.level == "warn" {
        let output = File::create(&log)?;
        command.stdout(output.try_clone()?).stderr(output);
    } else {
        command.stdout(Stdio::null()).stderr(Stdio::null());
    }
    Peer::start(setup.name, command, address, &log, Some(setup.upstream.calls))
}

fn config(setup: &Setup<'_>, address: SocketAddr) -> Result<String> {
    let mut config = format!(
        r#"
[server]
listen = "{address}"

[admin]
listen = "127.0.0.1:0"

[store]
{store}

[providers.opencage]
preset = "opencage"
key = "env:OPENCAGE_KEY"
base_url = "http://{upstream}"
price = "0.005 USD"
quota = {{ burst = 1000000, rate = "1000000/s" }}
"#,
        store = setup.store,
        upstream = setup.upstream.address,
    );
    for route in setup.routes {
        write_route(&mut config, route)?;
    }
    for index in 0..CALLERS {
        let hash = Sha256::digest(load::caller_key(index)).iter().fold(String::new(), |hex, byte| format!("{hex}{byte:02x}"));
        write!(config, "\n[callers.keys.c{index}]\nsha256 = \"{hash}\"\n")?;
    }
    Ok(config)
}

/// The limits are set so that nothing is refused. A store that is away is to end the run: doing without would flatter.
fn write_route(config: &mut String, Route { name, limits }: &Route) -> Result<()> {
    write!(
        config,
        r#"
[routes.{name}]
provider = "opencage"
operation = "geocode"
expose = "GET /{name}/v1/json"
cache = {{ found = "30d" }}
budget = "none"
on_store_error = {{ limits = "refuse", cache = "refuse", lease = "refuse" }}
"#
    )?;
    if *limits {
        let bucket = r#"{ burst = 1000000, rate = "1000000/s" }"#;
        writeln!(config, "limits = {{ caller = {bucket}, route = {bucket} }}")?;
    }
    Ok(())
}
