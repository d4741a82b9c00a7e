//! Counts a server's system calls under load, with strace.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::cpu;
use super::peer::Peer;
use super::round::measure;

/// Where the kernel's part goes: calls into it per request. A run of its own, because tracing slows a server many times.
pub fn print<'a>(peers: impl IntoIterator<Item = &'a Peer>) {
    println!("\nsystem calls per request:");
    for peer in peers {
        match per_request(peer) {
            Ok(calls) => println!("  {:<20}{calls}", peer.name),
            Err(reason) => println!("  {:<20}not traced: {reason:#}", peer.name),
        }
    }
}

/// The commonest calls with their number per request, such as `recvfrom 1.00  writev 1.00`.
fn per_request(peer: &Peer) -> Result<String> {
    let file = tempfile::NamedTempFile::new()?;
    let mut strace = Command::new("strace");
    strace.args(["-f", "-c", "-o"]).arg(file.path());
    for pid in cpu::pids(peer.pid())? {
        strace.arg("-p").arg(pid.to_string());
    }
    let mut tracer = strace.stdout(Stdio::null()).stderr(Stdio::null()).spawn().context("apt-get install strace")?;
    sleep(Duration::from_millis(300));
    let round = measure(peer, Duration::from_secs(1));
    // Interrupted, strace lets go of the server and writes its table.
    Command::new("kill").args(["-INT", &tracer.id().to_string()]).status()?;
    tracer.wait()?;
    let requests = round?.requests;

    let table = fs::read_to_string(file.path())?;
    let mut calls: Vec<(&str, f64)> =
        table.lines().filter_map(row).map(|(name, count)| (name, count / requests as f64)).collect();
    ensure!(!calls.is_empty(), "strace may not look into this process");
    calls.sort_by(|one, other| other.1.total_cmp(&one.1));
    let shown = calls.iter().filter(|(_, count)| *count >= 0.01).take(6);
    Ok(shown.map(|(name, count)| format!("{name} {count:.2}")).collect::<Vec<_>>().join("  "))
}

/// `% time, seconds, usecs/call, calls, [errors,] name`.
fn row(line: &str) -> Option<(&str, f64)> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (name, count) = (fields.last()?, fields.get(3)?);
    (*name != "total").then_some(())?;
    Some((name, count.parse().ok()?))
}
