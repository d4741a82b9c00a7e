//! A command of ours that ends by itself: how it ended, and what it said.

use std::path::Path;
use std::process::{Command, Output};

use super::gate::{ADMIN_TOKEN, Gate};
use super::soon;

/// How a process ended, and what it said.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ran {
    /// It failed with this exit code, printed nothing but a message with these words, and told no secret.
    pub fn failed(&self, code: i32, words: &str) {
        assert!(!self.err.contains(ADMIN_TOKEN), "{}", self.err);
        assert_eq!((self.code, self.out.as_str()), (Some(code), ""), "{}", self.err);
        assert!(self.err.contains(words), "{words}: {}", self.err);
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }
}

/// A process of ours in a directory of its own, with no environment but what is given.
pub fn tollgate(dir: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
    command(dir, arguments, environment).output().unwrap().into()
}

/// One that speaks to a gateway of this very test, which must go on meanwhile.
pub async fn beside(dir: &Path, arguments: &[&str]) -> Ran {
    let mut command = command(dir, arguments, &[]);
    let ended = tokio::task::spawn_blocking(move || command.output().unwrap());
    soon("the command's end", ended).await.unwrap().into()
}

/// As `tollgate.toml` has port 0, it is said where the gateway is.
pub async fn at(gate: &Gate, arguments: &[&str]) -> Ran {
    let admin = format!("http://{}/", gate.admin_addr);
    let all: Vec<&str> = arguments.iter().copied().chain(["--admin", &admin]).collect();
    beside(gate.dir.path(), &all).await
}

fn command(dir: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command.current_dir(dir).env_clear().args(arguments).envs(environment.iter().copied());
    command
}
