//! A whole gateway in this process: real listeners on free ports, a clock that is stepped, and the two numbers that are the bill.

use std::path::PathBuf;
use std::time::Duration;

use tempfile::TempDir;
use tollgate::clock::{Clock, Timestamp};
use tollgate::config::Config;
use tollgate::server::{self, Running, Source};

use super::client::{Client, Reply};
use super::upstream::FakeUpstream;

/// The caller key of every test config (its SHA-256 stands there).
pub const KEY: &str = "caller-key";
/// A second caller's key.
pub const OTHER_KEY: &str = "other-key";
/// The provider's credential: must leave by no door but the provider's.
pub const SECRET: &str = "s3cret/provider+key";
pub const ADMIN_TOKEN: &str = "admin-token";

/// 2026-11-30, noon.
const START: Timestamp = Timestamp(1_796_040_000_000_000);

/// A gateway under test.
pub struct Gate {
    pub client: Client,
    pub admin: Client,
    pub addr: std::net::SocketAddr,
    pub admin_addr: std::net::SocketAddr,
    pub clock: Clock,
    pub running: Option<Running>,
    pub dir: TempDir,
    /// What its ledger had at the start; none where it shares one.
    before: Option<u64>,
}

/// The config around a test's own lines: `[server]`, `[admin]`, `[store]`, two callers (`web`, `other`).
///
/// In `body`, `{upstream}` stands for the upstream's URL, `{secret}` for the provider's key, `{dir}` for the test's directory.
pub struct Setup {
    pub server: String,
    pub store: String,
    pub callers: String,
    pub body: String,
}

impl Setup {
    pub fn new(body: impl Into<String>) -> Self {
        Self { server: String::new(), store: "url = \"memory:\"".into(), callers: String::new(), body: body.into() }
    }

    /// More lines of `[server]`.
    pub fn server(mut self, lines: &str) -> Self {
        self.server = lines.into();
        self
    }

    /// The lines of `[store]`.
    pub fn store(mut self, lines: &str) -> Self {
        self.store = lines.into();
        self
    }

    /// More lines of `[callers]`.
    pub fn callers(mut self, lines: &str) -> Self {
        self.callers = lines.into();
        self
    }

    /// The config as text; writes the secrets it names into `dir`.
    pub fn render(&self, dir: &std::path::Path, upstream: &str) -> String {
        for (name, value) in [("secret", SECRET), ("admin", ADMIN_TOKEN)] {
            std::fs::write(dir.join(name), value).unwrap();
        }
        let Self { server, store, callers, body } = self;
        let text = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n{server}\n[admin]\nlisten = \"127.0.0.1:0\"\ntoken = \"file:{{dir}}/admin\"\n\
             [store]\n{store}\n[callers]\n{callers}\n[callers.keys.web]\nsha256 = \"{}\"\n[callers.keys.other]\nsha256 = \"{}\"\n{body}",
            sha256(KEY),
            sha256(OTHER_KEY)
        );
        let secret = format!("file:{}/secret", dir.display());
        text.replace("{upstream}", upstream).replace("{secret}", &secret).replace("{dir}", &dir.display().to_string())
    }

    /// Starts it in front of an upstream, with a clock that stands still.
    pub async fn start(self, upstream: &FakeUpstream) -> Gate {
        self.start_at(&upstream.url()).await
    }

    pub async fn start_at(self, upstream: &str) -> Gate {
        Gate::from(self.render_into_dir(upstream), Clock::manual(START)).await
    }

    pub async fn start_with(self, upstream: &FakeUpstream, clock: Clock) -> Gate {
        Gate::from(self.render_into_dir(&upstream.url()), clock).await
    }

    fn render_into_dir(&self, upstream: &str) -> TempDir {
        let dir = tempfile::tempdir().unwrap();
        let text = self.render(dir.path(), upstream);
        std::fs::write(dir.path().join("tollgate.toml"), text).unwrap();
        dir
    }
}

impl Gate {
    /// Starts the config in a directory.
    pub async fn from(dir: TempDir, clock: Clock) -> Self {
        let path = dir.path().join("tollgate.toml");
        let config = Config::load(&path).unwrap_or_else(|faults| panic!("{faults}"));
        let running = server::start(config, clock.clone(), Source::file(&path)).await.unwrap();
        let addr = running.gateway[0];
        let client = Client::new(format!("http://{addr}")).with("x-api-key", KEY);
        let admin = Client::new(format!("http://{}", running.admin)).with("authorization", &format!("Bearer {ADMIN_TOKEN}"));
        let shared = std::fs::read_to_string(&path).unwrap().contains("redis://");
        let mut gate = Self { client, admin, addr, admin_addr: running.admin, clock, running: Some(running), dir, before: None };
        if !shared {
            gate.before = gate.ledger().await.map(|(spent, _)| spent);
        }
        gate
    }

    /// The client of the second caller.
    pub fn other(&self) -> Client {
        Client::new(format!("http://{}", self.addr)).with("x-api-key", OTHER_KEY)
    }

    /// A client without a credential.
    pub fn stranger(&self) -> Client {
        Client::new(format!("http://{}", self.addr))
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.client.get(path).await
    }

    pub fn advance(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    pub fn config_path(&self) -> PathBuf {
        self.dir.path().join("tollgate.toml")
    }

    pub async fn metrics(&self) -> String {
        self.admin.get("/metrics").await.text()
    }

    /// The sum over every line of a metric whose labels hold `label`.
    pub async fn metric(&self, name: &str, label: &str) -> u64 {
        let text = self.metrics().await;
        let lines = text.lines().filter(|line| line.starts_with(&format!("{name}{{")) && line.contains(label));
        lines.filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok()).sum()
    }

    /// A metric without labels.
    pub async fn metric_of(&self, name: &str) -> u64 {
        let text = self.metrics().await;
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok());
        line.unwrap_or_else(|| panic!("no {name} in {text}"))
    }

    /// Waits until no attempt's money is left to be settled: that is a task of its own.
    pub async fn settled(&self) {
        let of = async |op: &str| self.metric("tollgate_store_seconds_count", &format!("op=\"{op}\"")).await;
        super::soon("every attempt to be settled", async {
            while of("reserve").await != of("settle").await {
                tokio::time::sleep(Duration::from_millis(3)).await;
            }
        })
        .await;
    }

    /// Money spent so far, in micro-units. The ledger must say the same, and nothing be left open, once nothing is in the air.
    pub async fn spent(&self) -> u64 {
        let spent = self.metric("tollgate_spend_micros_total", "").await;
        if let Some(before) = self.before {
            self.ledger_says(before + spent).await;
        }
        spent
    }

    pub fn shares_its_store(&self) -> bool {
        std::fs::read_to_string(self.config_path()).unwrap().contains("redis://")
    }

    /// What the ledger has, and how many attempts in it are open; nothing, if it cannot be read.
    async fn ledger(&self) -> Option<(u64, u64)> {
        let reply = self.admin.get("/v1/spend?since=1970-01-01&until=9999-12-31&by=").await;
        let total = (reply.status == 200).then(|| reply.json()["totals"][0].clone())?;
        Some((total["micros"].as_u64().unwrap_or_default(), total["open"]["calls"].as_u64().unwrap_or_default()))
    }

    /// Settling is a task of its own, so the ledger may be a moment behind.
    pub async fn ledger_says(&self, spent: u64) {
        super::soon("the ledger to say what was spent", async {
            while self.metric_of("tollgate_flights").await == 0 && self.ledger().await.is_some_and(|ledger| ledger != (spent, 0))
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await;
    }

    /// Sets a switch.
    pub async fn switch(&self, route: &str, state: &str) {
        let body = serde_json::json!({ "state": state, "reason": "test" }).to_string();
        let reply = self.admin.send(http::Method::PUT, &format!("/v1/switches/{route}"), body.into()).await;
        assert_eq!(reply.status, 200, "{reply:?}");
    }

    /// Ends it in order and gives the directory back.
    pub async fn stop(mut self) -> TempDir {
        self.running.take().unwrap().stop().await;
        self.dir
    }
}

pub fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    sha2::Sha256::digest(text.as_bytes()).iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// Percent-encodes a query value.
pub fn encode(text: &str) -> String {
    let mut out = String::new();
    tollgate::question::wire::encode(text, &mut out);
    out
}

/// A route `geo` (`GET /geocode/v1/json`, OpenCage's operation) at 5,000 micro-dollars a call, without retries; `provider` and
/// `route` are more lines of each.
pub fn opencage(provider: &str, route: &str) -> Setup {
    Setup::new(format!(
        "[providers.opencage]\npreset = \"opencage\"\nbase_url = \"{{upstream}}\"\nkey = \"{{secret}}\"\nprice = \"0.005 USD\"\n\
         {}\n{provider}\n[routes.geo]\nprovider = \"opencage\"\noperation = \"geocode\"\nbudget = \"none\"\n{route}\n",
        if provider.contains("retry") { "" } else { "retry = { attempts = 1 }" }
    ))
}

/// A route `quote` of its own shape (`GET /v1/quote?from=&to=`) in front of Google Routes.
pub fn quote(provider: &str, route: &str) -> Setup {
    Setup::new(format!(
        "[providers.google-routes]\npreset = \"google-routes\"\nbase_url = \"{{upstream}}\"\nkey = \"{{secret}}\"\n\
         price = \"0.005 USD\"\nterms_override = \"a test\"\n{}\n{provider}\n\
         [routes.quote]\nprovider = \"google-routes\"\nexpose = \"GET /v1/quote\"\nunordered = [[\"from\", \"to\"]]\nbudget = \"none\"\n\
         {}\n{route}\n\
         [routes.quote.question]\nfrom = {{ in = \"query\", type = \"text\", min = 2, max = 120, required = true }}\n\
         to = {{ in = \"query\", type = \"text\", min = 2, max = 120, required = true }}\n\
         [routes.quote.send]\nmethod = \"POST\"\npath = \"/directions/v2:computeRoutes\"\n\
         headers = {{ \"X-Goog-FieldMask\" = \"routes.distanceMeters,routes.duration,geocodingResults\" }}\n\
         json = {{ origin = {{ address = \"{{from}}\" }}, destination = {{ address = \"{{to}}\" }}, travelMode = \"DRIVE\" }}\n\
         [routes.quote.reply]\ndistance_meters = \"$.routes[0].distanceMeters\"\nduration = \"$.routes[0].duration\"\n",
        if provider.contains("retry") { "" } else { "retry = { attempts = 1 }" },
        if route.contains("cache") {
            ""
        } else {
            "cache = { found = \"30d\", not_found = \"6h\", weak = \"1h\", rejected = \"10m\" }"
        }
    ))
}

/// OpenCage's answer for a found place.
pub fn found() -> serde_json::Value {
    serde_json::json!({
        "results": [{ "confidence": 9, "formatted": "Somewhere", "geometry": { "lat": 1.5, "lng": 2.5 } }],
        "status": { "code": 200, "message": "OK" }, "total_results": 1
    })
}

/// Google's answer for a route.
pub fn fare() -> serde_json::Value {
    serde_json::json!({ "routes": [{ "distanceMeters": 280_000, "duration": "17000s" }], "geocodingResults": {} })
}

/// OpenCage's answer for no place.
pub fn nothing() -> serde_json::Value {
    serde_json::json!({ "results": [], "status": { "code": 200, "message": "OK" }, "total_results": 0 })
}
