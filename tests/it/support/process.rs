//! The real binary: what it prints, what it is told by signals, and how it ends.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::signal::signal;
use super::soon;

/// A process under test. Dropping it kills it.
pub struct Process {
    child: Child,
    pub out: Lines,
    pub err: Lines,
}

/// What has come on one stream so far.
#[derive(Clone, Default)]
pub struct Lines(Arc<Mutex<(VecDeque<String>, String)>>, Arc<AtomicBool>);

impl Process {
    /// `tollgate` with these arguments and these variables, and none of this process's own.
    pub fn start(arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(arguments).env_clear().envs(variables.iter().copied());
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (out, err) = (Lines::follow(child.stdout.take().unwrap()), Lines::follow(child.stderr.take().unwrap()));
        Self { child, out, err }
    }

    /// The address a role listens at.
    pub async fn listening(&self, role: &str) -> SocketAddr {
        let line = self.out.wait_for(&format!("listening role={role} addr=")).await;
        line.rsplit('=').next().unwrap().parse().unwrap()
    }

    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    /// Waits for its end; the exit code, or none if a signal ended it.
    pub async fn ended(&mut self) -> Option<i32> {
        soon("the process's end", async {
            loop {
                if let Some(status) = self.child.try_wait().unwrap() {
                    return status.code();
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        })
        .await
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Lines {
    fn follow(stream: impl Read + Send + 'static) -> Self {
        let lines = Self::default();
        let own = lines.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let mut own = own.0.lock().unwrap();
                own.1.push_str(&format!("{line}\n"));
                own.0.push_back(line);
            }
            own.1.store(true, Ordering::Release);
        });
        lines
    }

    /// Waits for a line that holds `text`; lines before it are passed over.
    pub async fn wait_for(&self, text: &str) -> String {
        let found = tokio::time::timeout(super::HANG, async {
            loop {
                while let Some(line) = self.next() {
                    if line.contains(text) {
                        return line;
                    }
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        found.await.unwrap_or_else(|_| panic!("no {text:?} in:\n{}", self.all()))
    }

    fn next(&self) -> Option<String> {
        self.0.lock().unwrap().0.pop_front()
    }

    /// Everything, once the stream has ended.
    pub async fn to_end(&self) -> String {
        soon("the stream's end", async {
            while !self.1.load(Ordering::Acquire) {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        })
        .await;
        self.all()
    }

    /// All that has come.
    pub fn all(&self) -> String {
        self.0.lock().unwrap().1.clone()
    }
}
