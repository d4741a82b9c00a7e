//! CPU time of a server with all its processes, from `/proc/PID/stat`.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};

/// Linux reports in units of 1/100 s to every program, whatever the kernel's own tick.
const TICK: Duration = Duration::from_millis(10);

/// Time spent in the program, and in the kernel for it.
#[derive(Clone, Copy, Default)]
pub struct Cpu {
    pub user: Duration,
    pub system: Duration,
}

impl Cpu {
    pub fn since(&self, earlier: &Self) -> Self {
        Self { user: self.user.saturating_sub(earlier.user), system: self.system.saturating_sub(earlier.system) }
    }

    pub fn total(&self) -> Duration {
        self.user + self.system
    }
}

struct Process {
    pid: u32,
    parent: u32,
    cpu: Cpu,
}

/// Of the process and all that descend from it.
pub fn of_tree(root: u32) -> Result<Cpu> {
    let sum = tree(root)?
        .iter()
        .fold(Cpu::default(), |sum, process| Cpu { user: sum.user + process.cpu.user, system: sum.system + process.cpu.system });
    Ok(sum)
}

/// The process and all that descend from it, by id.
pub fn pids(root: u32) -> Result<Vec<u32>> {
    Ok(tree(root)?.iter().map(|process| process.pid).collect())
}

fn tree(root: u32) -> Result<Vec<Process>> {
    let mut others: Vec<Process> = fs::read_dir("/proc")?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| read(pid, &fs::read_to_string(format!("/proc/{pid}/stat")).ok()?))
        .collect();
    let mut found: Vec<Process> = others.extract_if(.., |process| process.pid == root).collect();
    found.first().with_context(|| format!("process {root} is gone"))?;
    loop {
        let known: Vec<u32> = found.iter().map(|process| process.pid).collect();
        let children: Vec<Process> = others.extract_if(.., |process| known.contains(&process.parent)).collect();
        if children.is_empty() {
            return Ok(found);
        }
        found.extend(children);
    }
}

/// `PID (NAME) STATE PARENT ..`; the name may hold anything, a bracket too. User and system time are fields 14 and 15.
fn read(pid: u32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u32>().ok();
    Some(Process { pid, parent: field(4)?, cpu: Cpu { user: TICK * field(14)?, system: TICK * field(15)? } })
}
