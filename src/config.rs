//! The config: the sum of what every part of the house says it needs.
//!
//! A file is parsed into a tree that remembers lines, the environment is laid over it, presets are laid under it, and each part
//! reads its own section. Every fault is collected; a config with one fault is none.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

pub(crate) mod alerts;
pub mod fault;
mod load;
pub(crate) mod node;
mod operation;
pub(crate) mod secret;
pub(crate) mod section;
mod store;
pub(crate) mod units;

use fault::Faults;
use node::{Node, Origin, Table, Value, merge};
use secret::Secret;
use section::{Reading, Section};
use store::Store;
use units::{Cidr, Count, Size};

pub(crate) use store::{Redis, StoreUrl};

use crate::hooks;
use crate::provider::{BucketRule, Provider, preset};
use crate::route::{Defaults, Route};
use crate::stage::{authenticate, limits};
use crate::store::{Bucket, redis};

/// A whole config, valid in itself.
#[derive(Debug)]
pub struct Config {
    pub(crate) server: Server,
    pub(crate) admin: Admin,
    /// Absent: no listener.
    pub(crate) hooks: Option<hooks::Config>,
    pub(crate) store: Store,
    pub(crate) alerts: Option<alerts::Alerts>,
    pub(crate) callers: authenticate::config::Config,
    pub(crate) routes: Vec<Arc<Route>>,
    effective: toml::Table,
}

/// `[server]`.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    pub(crate) listen: Vec<SocketAddr>,
    pub(crate) head_timeout: Duration,
    pub(crate) body_timeout: Duration,
    pub(crate) idle_timeout: Duration,
    pub(crate) max_head: usize,
    pub(crate) max_connections: usize,
    pub(crate) trusted_proxies: Vec<Cidr>,
    pub(crate) drain: Duration,
    defaults: Defaults,
}

/// `[admin]`.
#[derive(Clone, Debug)]
pub(crate) struct Admin {
    pub(crate) listen: SocketAddr,
    pub(crate) token: Option<Secret>,
}

impl Config {
    /// Reads a file, with the environment laid over it.
    pub fn load(path: &Path) -> Result<Self, Faults> {
        load::file(path).and_then(|table| Self::read(&path.display().to_string(), &table))
    }

    /// Reads `[admin]` of a file alone, for who asks a running gateway: the secrets of the rest need not be there.
    pub(crate) fn load_admin(path: &Path) -> Result<Admin, Faults> {
        let table = load::file(path)?;
        let reading = Reading::default();
        let origin = Origin::File { name: path.display().to_string().into(), line: 1, column: 1 };
        let admin = Admin::read(Section::root(&reading, &table, &origin).section_or_empty("admin"));
        let faults = reading.faults.into_inner();
        if faults.is_empty() { Ok(admin) } else { Err(faults) }
    }

    /// Reads a text, for what is built in. `name` stands for the file in faults.
    pub(crate) fn parse(name: &str, source: &str) -> Result<Self, Faults> {
        load::text(name, source, &[]).and_then(|table| Self::read(name, &table))
    }

    /// The config as it takes effect, defaults and presets included, secrets by reference.
    #[must_use]
    pub fn effective(&self) -> String {
        toml::to_string_pretty(&self.effective).unwrap_or_default()
    }

    fn read(name: &str, table: &Table) -> Result<Self, Faults> {
        let reading = Reading::default();
        // The file itself, for what is missing from it.
        let origin = Origin::File { name: name.into(), line: 1, column: 1 };
        let root = Section::root(&reading, table, &origin);
        let server = Server::read(root.section_or_empty("server"));
        let admin = Admin::read(root.section_or_empty("admin"));
        let store = Store::read(root.section_or_empty("store"));
        let callers_section = root.section_or_empty("callers");
        let callers = authenticate::config::Config::read(&callers_section);
        callers_section.finish();
        let alerts = root.section("alerts").and_then(alerts::Alerts::read);
        root.not_built("archive", "the archive is");
        let hooks = root.section("hooks").map(|section| {
            let routes = root.peek("routes").and_then(Node::table);
            hooks::Config::read(section, |name| routes.is_some_and(|routes| routes.contains_key(name)))
        });
        let providers = read_providers(&root);
        let routes = read_routes(&root, &providers, server.defaults);
        check_routes(&root, &routes, &callers);
        if matches!(store.url, StoreUrl::Redis(_)) {
            check_countable(&root, &routes);
        }
        root.finish();
        let effective = reading.effective();
        let mut faults = reading.faults.into_inner();
        if faults.is_empty() {
            return Ok(Self { server, admin, hooks, store, alerts, callers, routes, effective });
        }
        faults.sort();
        Err(faults)
    }
}

impl Server {
    fn read(section: Section<'_>) -> Self {
        let listen = section.list::<SocketAddr>("listen").unwrap_or_else(|| default_listen(&section));
        let server = Self {
            listen,
            head_timeout: section.or("head_timeout", Duration::from_secs(5)),
            body_timeout: section.or("body_timeout", Duration::from_secs(5)),
            idle_timeout: section.or("idle_timeout", Duration::from_secs(60)),
            max_head: section.or("max_head", Size(32 << 10)).0,
            max_connections: section.or("max_connections", Count(10_000)).0 as usize,
            trusted_proxies: section.list_or("trusted_proxies", Vec::new),
            drain: section.or("drain", Duration::from_secs(20)),
            defaults: Defaults {
                deadline: section.or("deadline", Duration::from_secs(15)),
                max_body: section.or("max_body", Size(64 << 10)).0,
            },
        };
        if server.max_head < 8 << 10 {
            section.fault("max_head", "holds no ordinary head", "write 8KiB or more");
        }
        section.show("listen", toml::Value::Array(server.listen.iter().map(|addr| addr.to_string().into()).collect()));
        section.finish();
        server
    }
}

/// Loopback; or, on platforms that say so, every address at `$PORT`.
fn default_listen(section: &Section<'_>) -> Vec<SocketAddr> {
    let Some(port) = std::env::var_os("PORT") else { return vec![SocketAddr::from(([127, 0, 0, 1], 8080))] };
    let number = port.to_str().and_then(|port| port.parse().ok());
    let number: u16 = number.unwrap_or_else(|| {
        let problem = format!("{} is not a port", port.display());
        section.reading().fault(
            &Origin::Env("PORT".into()),
            "server.listen",
            problem,
            "write server.listen, or a number into PORT",
        );
        0
    });
    vec![SocketAddr::from(([0, 0, 0, 0], number))]
}

impl Admin {
    fn read(section: Section<'_>) -> Self {
        let admin = Self { listen: section.or("listen", SocketAddr::from(([127, 0, 0, 1], 9099))), token: section.get("token") };
        section.finish();
        admin
    }
}

/// Providers by name, their presets merged below what the file says.
fn read_providers(root: &Section<'_>) -> BTreeMap<String, Option<Arc<Provider>>> {
    let mut providers = BTreeMap::new();
    for (name, written) in root.named("providers") {
        check_name(&written, name);
        let stated = written.peek("preset");
        let known = stated.is_none_or(|node| node.text().and_then(preset::find).is_some());
        let (mut table, operations) = match stated.map(|node| (node, node.text().and_then(preset::find))) {
            None => (Table::new(), Table::new()),
            Some((_, Some(preset))) => preset,
            Some((_, None)) => {
                written.fault("preset", "there is no such preset", format!("write one of {}", preset::names()));
                (Table::new(), Table::new())
            }
        };
        if preset::raises_terms(&table, written.table()) && written.peek("terms_override").is_none() {
            let remedy = "write terms_override = \"what permits it, in words\"";
            written.fault("terms.max_store", "is longer than the terms known of this provider", remedy);
        }
        merge(&mut table, written.table());
        let provider = written.over(&table, |section| Provider::read(section, name, operations));
        providers.insert(name.to_owned(), Some(provider).filter(|_| known));
    }
    providers
}

fn read_routes(root: &Section<'_>, providers: &BTreeMap<String, Option<Arc<Provider>>>, defaults: Defaults) -> Vec<Arc<Route>> {
    let mut routes = Vec::new();
    for (name, written) in root.named("routes") {
        check_name(&written, name);
        let names: Vec<&str> = providers.keys().map(String::as_str).collect();
        let stated = written.peek("provider").and_then(Node::text);
        let Some(provider) = stated.and_then(|name| providers.get(name)) else {
            let problem = stated.map_or("is missing".to_owned(), |name| format!("there is no [providers.{name}]"));
            written.fault("provider", problem, format!("name one of: {}", names.join(", ")));
            continue;
        };
        // Nothing can be said of an operation whose preset is not known.
        let Some(provider) = provider else { continue };
        let Some(table) = operation::route(&written, provider) else { continue };
        routes.push(Arc::new(written.over(&table, |section| Route::read(section, name, Arc::clone(provider), defaults))));
    }
    routes
}

fn check_name(section: &Section<'_>, name: &str) {
    let right = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '_';
    if name.is_empty() || name == "all" || !name.chars().all(right) {
        section.fault("", format!("{name:?} is no name"), "use lower-case letters, digits, - and _ (and not `all`)");
    }
}

fn check_routes(root: &Section<'_>, routes: &[Arc<Route>], callers: &authenticate::config::Config) {
    if root.peek("routes").is_none_or(|node| node.table().is_some_and(Table::is_empty)) {
        root.fault("routes", "there are no routes, so nothing can be called", "add a [routes.NAME]");
    }
    for (index, route) in routes.iter().enumerate() {
        if let Some(other) = routes.iter().take(index).find(|other| other.expose.overlaps(&route.expose)) {
            root.fault_in(
                &["routes", &route.name, "expose"],
                format!("overlaps with the route {}", other.name),
                "expose it at another path",
            );
        }
        let open = route.callers.is_none() && callers.by_address;
        if open && route.limits.as_ref().is_none_or(|limits| limits.caller.is_none()) {
            root.fault_in(
                &["routes", &route.name, "limits"],
                "anonymous callers may call this route as often as they like".to_owned(),
                "add limits = { caller = { burst = 10, rate = \"1/s\" } }, or name its callers",
            );
        }
        if open && route.writes.is_some() {
            root.fault_in(
                &["routes", &route.name, "callers"],
                "anonymous callers may have this route send what costs money".to_owned(),
                "name its callers: callers = [\"web\"]",
            );
        }
        for caller in route.callers.iter().flatten() {
            let nobody_else = callers.jwt.is_none() && callers.header.is_none() && !callers.by_address;
            if nobody_else && !callers.keys.contains_key(caller) {
                root.fault_in(
                    &["routes", &route.name, "callers"],
                    format!("there is no caller {caller:?}"),
                    "name one of [callers.keys]",
                );
            }
        }
    }
}

/// A shared store counts in doubles: what it could not count exactly is refused here, and not when it happens.
fn check_countable(root: &Section<'_>, routes: &[Arc<Route>]) {
    const PROBLEM: &str = "is a rate that a shared store cannot count exactly";
    const REMEDY: &str = "write rounder numbers: fewer digits in the count and in the period";
    let uncountable = |rule: BucketRule, cost| {
        let bucket = Bucket { cost, ..Bucket::whole(0, rule.burst, rule.rate.count, rule.rate.per) };
        !redis::countable(&bucket)
    };
    for route in routes {
        for (key, rule) in route.limits.iter().flat_map(limits::Config::rules).chain(route.refresh.map(|rule| ("refresh", rule)))
        {
            if uncountable(rule, 1_000_000) {
                root.fault_in(&["routes", &route.name, key], PROBLEM.to_owned(), REMEDY);
            }
        }
        if route.provider.quota.is_some_and(|rule| uncountable(rule, 1_000_000)) {
            root.fault_in(&["providers", &route.provider.name, "quota"], PROBLEM.to_owned(), REMEDY);
        }
    }
}

/// An empty table, for a value of the tree that is not there.
impl From<Table> for Value {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}
