//! A bare round trip: `EVALSHA` of the limiter's script with two buckets, with nothing of ours around it.
//!
//! A process of its own on the servers' core, so that the way to Redis is the same as a gateway's.

use std::env;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, ProtocolVersion, Value};

use crate::common::cores;
use crate::common::load::CALLERS;
use crate::common::settings;
use crate::latency::Latency;
use crate::redis_server::RedisServer;
use crate::script;

/// The argument under which this binary makes trips: `--evalsha URL HASH CALLERS TRIPS`.
const ARGUMENT: &str = "--evalsha";

/// Trips of so many callers at once.
pub struct Trips {
    pub callers: usize,
    pub rounds: Vec<Seen>,
}

/// What a round has seen.
pub struct Seen {
    pub latency: Latency,
    pub per_second: f64,
}

impl Trips {
    pub fn new(callers: usize) -> Self {
        Self { callers, rounds: Vec::new() }
    }

    /// So many trips, all callers together.
    pub fn round(&mut self, redis: &RedisServer, trips: usize) -> Result<()> {
        let mut command = cores::on(cores::SERVER, &env::current_exe()?);
        command.args([ARGUMENT, &redis.url(), &redis.hash, &self.callers.to_string(), &trips.to_string()]);
        let output = command.output()?;
        ensure!(output.status.success(), "{ARGUMENT}: {}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout)?;
        let mut numbers = said.split_whitespace().map(str::parse);
        let mut number = || numbers.next().context("too few numbers")?.context("no number");
        let latency = Latency { median: number()?, p99: number()? };
        self.rounds.push(Seen { latency, per_second: number()? });
        Ok(())
    }
}

// === the process ===

/// Makes the trips and says what was seen, if this process was started for that.
pub fn run_if_asked() -> Option<Result<()>> {
    let arguments = settings::role(ARGUMENT)?;
    Some(run(&arguments))
}

fn run(arguments: &[String]) -> Result<()> {
    let [url, hash, callers, trips] = arguments else { anyhow::bail!("URL HASH CALLERS TRIPS") };
    let (url, hash, callers, trips): (_, _, usize, usize) = (url.clone(), hash.clone(), callers.parse()?, trips.parse()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // On a worker, as a gateway's requests are: this thread is none.
    let Seen { latency, per_second } = runtime.block_on(runtime.spawn(seen(url, hash, callers, trips)))??;
    println!("{} {} {per_second}", latency.median, latency.p99);
    Ok(())
}

async fn seen(url: String, hash: String, callers: usize, trips: usize) -> Result<Seen> {
    let connection = connect(&url).await?;
    caller(connection.clone(), hash.clone(), 0, 500).await?;
    let start = Instant::now();
    let each = trips / callers;
    let tasks = (0..callers).map(|index| tokio::spawn(caller(connection.clone(), hash.clone(), index, each)));
    let mut samples = Vec::with_capacity(trips);
    for task in tasks.collect::<Vec<_>>() {
        samples.extend(task.await??);
    }
    let per_second = samples.len() as f64 / start.elapsed().as_secs_f64();
    Ok(Seen { latency: Latency::of(samples)?, per_second })
}

/// Set up as tollgate sets up its own.
async fn connect(url: &str) -> Result<MultiplexedConnection> {
    let info = url.into_connection_info()?;
    let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
    let info = info.set_tcp_settings(TcpSettings::default().set_nodelay(true)).set_redis_settings(settings);
    let config = AsyncConnectionConfig::new().set_response_timeout(None).set_pipeline_buffer_size(1024);
    Ok(Client::open(info)?.get_multiplexed_async_connection_with_config(&config).await?)
}

/// One caller: the next trip begins when the last has ended.
async fn caller(mut connection: MultiplexedConnection, hash: String, index: usize, trips: usize) -> Result<Vec<Duration>> {
    let mut samples = Vec::with_capacity(trips);
    for trip in 0..trips {
        let start = Instant::now();
        let command = take(&hash, index + trip, trip);
        let reply: Value = command.query_async(&mut connection).await?;
        samples.push(start.elapsed());
        ensure!(matches!(reply, Value::Array(_)), "{reply:?}");
    }
    Ok(samples)
}

fn take(hash: &str, owner: usize, nonce: usize) -> redis::Cmd {
    let bucket = |id: usize| format!("trip:bucket:{{bucket}}:{id:032x}");
    let mut command = redis::cmd("EVALSHA");
    command.arg(hash).arg(2).arg(bucket(1 + owner % CALLERS)).arg(bucket(0)).arg(format!("{nonce:x}")).arg(1);
    command.arg(&script::NUMBERS).arg(&script::NUMBERS);
    command
}
