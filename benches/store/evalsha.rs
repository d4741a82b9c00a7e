//! A bare round trip: `EVALSHA` of the limiter's script with two buckets, with nothing of ours around it.
//!
//! A process of its own on the servers' core, so that the way to Redis is the same as a gateway's.

use std::env;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use redis::aio::MultiplexedConnection;
use redis::io::tcp::TcpSettings;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo, ProtocolVersion, Value};

use crate::common::cores;
use crate::common::load::CALLERS;
use crate::common::settings;
use crate::latency::Latency;
use crate::quiet::{Quiet, TURN};
use crate::redis_server::RedisServer;
use crate::script;

/// The argument under which this binary makes trips: `--evalsha URL PROCESS HASH CALLERS TRIPS`, the process being Redis.
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
    /// Turns that were left out, in percent.
    pub left_out: f64,
}

impl Trips {
    pub fn new(callers: usize) -> Self {
        Self { callers, rounds: Vec::new() }
    }

    /// So many trips, all callers together.
    pub fn round(&mut self, redis: &RedisServer, trips: usize) -> Result<()> {
        let mut command = cores::on(cores::SERVER, &env::current_exe()?);
        let [process, callers, trips] = [redis.pid().to_string(), self.callers.to_string(), trips.to_string()];
        command.args([ARGUMENT, &redis.url(), &process, &redis.hash, &callers, &trips]);
        let output = command.output()?;
        ensure!(output.status.success(), "{ARGUMENT}: {}", String::from_utf8_lossy(&output.stderr));
        let said = String::from_utf8(output.stdout)?;
        let mut numbers = said.split_whitespace().map(str::parse);
        let mut number = || numbers.next().context("too few numbers")?.context("no number");
        let latency = Latency { median: number()?, p99: number()? };
        self.rounds.push(Seen { latency, per_second: number()?, left_out: number()? });
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
    let [url, process, hash, callers, trips] = arguments else { bail!("URL PROCESS HASH CALLERS TRIPS") };
    let (quiet, callers, trips) = (Quiet::watch(&[process.parse()?]), callers.parse()?, trips.parse()?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    // On a worker, as a gateway's requests are: this thread is none.
    let seen = runtime.spawn(seen(url.clone(), hash.clone(), quiet, callers, trips));
    let Seen { latency, per_second, left_out } = runtime.block_on(seen)??;
    println!("{} {} {per_second} {left_out}", latency.median, latency.p99);
    Ok(())
}

async fn seen(url: String, hash: String, mut quiet: Quiet, callers: usize, trips: usize) -> Result<Seen> {
    let connection = connect(&url).await?;
    caller(connection.clone(), hash.clone(), 0, 500).await?;
    let samples = match callers {
        1 => in_turns(connection, hash, &mut quiet, trips).await?,
        _ => at_once(connection, hash, callers, trips).await?,
    };
    let time: Duration = samples.iter().sum();
    let per_second = (callers * samples.len()) as f64 / time.as_secs_f64();
    Ok(Seen { latency: Latency::of(samples), per_second, left_out: quiet.left_out() })
}

/// One caller, back to back.
async fn in_turns(connection: MultiplexedConnection, hash: String, quiet: &mut Quiet, trips: usize) -> Result<Vec<Duration>> {
    let mut samples = Vec::with_capacity(trips);
    for turn in 0..trips / TURN {
        let waited = quiet.waited()?;
        let measured = caller(connection.clone(), hash.clone(), turn * TURN, TURN).await?;
        if quiet.left_alone(waited)? {
            samples.extend(measured);
        }
    }
    Ok(samples)
}

/// All callers at once. There is no turn in which nobody waits: each waits for the others.
async fn at_once(connection: MultiplexedConnection, hash: String, callers: usize, trips: usize) -> Result<Vec<Duration>> {
    let one = |index| tokio::spawn(caller(connection.clone(), hash.clone(), index, trips / callers));
    let tasks: Vec<_> = (0..callers).map(one).collect();
    let mut samples = Vec::with_capacity(trips);
    for task in tasks {
        samples.extend(task.await??);
    }
    Ok(samples)
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
