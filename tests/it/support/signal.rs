//! Signals to processes of the test, by name.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Sends a signal: `TERM`, `KILL`, `STOP`, `CONT`.
pub fn signal(id: u32, name: &str) {
    let status = Command::new("kill").args([&format!("-{name}"), &id.to_string()]).status().unwrap();
    assert!(status.success(), "kill -{name} {id}");
}

/// Stops a process; it does nothing more when this returns, whereas the signal alone takes its time to reach each thread.
pub fn stop(id: u32) {
    signal(id, "STOP");
    for _ in 0..10_000 {
        if stands(id) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("{id} does not stop");
}

/// Whether all its threads are stopped.
fn stands(id: u32) -> bool {
    let threads = std::fs::read_dir(format!("/proc/{id}/task")).unwrap();
    let mut states = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
    // The state follows the name, which stands in brackets and may hold some.
    states.all(|stat| stat.rsplit(") ").next().unwrap().starts_with('T'))
}

/// Ends a process when the test's own process ends in a way that drops nothing (an abort, a signal).
#[derive(Debug)]
pub struct Leash(Child);

impl Leash {
    /// Holds a process by its id. To be dropped before that process is reaped.
    pub fn of(id: u32) -> Self {
        let wait = r#"trap "" INT TERM HUP; read -r _; kill -KILL "$0""#;
        let mut command = Command::new("sh");
        command.args(["-c", wait, &id.to_string()]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

impl Leash {
    /// What happens when the test's process ends.
    pub fn let_go(mut self) {
        drop(self.0.stdin.take());
        self.0.wait().unwrap();
    }
}

impl Drop for Leash {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
