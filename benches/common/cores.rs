//! Who runs on which core.

use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use anyhow::{Result, ensure};

/// The server under load has it to itself.
pub const SERVER: &str = "0";
/// The generator, and every upstream.
pub const GENERATOR: &str = "1";

/// Threads and children started later inherit it. Tells how many cores there are.
pub fn stay_on_the_generators() -> Result<usize> {
    let cores = thread::available_parallelism()?.get();
    ensure!(cores >= 2, "this bench needs two cores, one for the server and one for the generator; there is {cores}");
    let own = std::process::id().to_string();
    let done = Command::new("taskset").args(["-cp", GENERATOR, &own]).stdout(Stdio::null()).status();
    ensure!(done.is_ok_and(|status| status.success()), "taskset failed: apt-get install util-linux");
    Ok(cores)
}

/// A program that keeps to one core, with all it starts.
pub fn on(core: &str, program: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", core]).arg(program);
    command
}
