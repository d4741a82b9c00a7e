//! The commands. Exit codes: 0 fine, 1 failed while running, 2 wrong arguments, 78 wrong config.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::config::fault::Faults;

mod admin;
mod bill;
mod check;
mod demo;
mod explain;
mod key;
mod serve;
mod switch;
mod writes;

/// A gateway in front of APIs that charge per call.
#[derive(Parser)]
#[command(name = "tollgate", version, about, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Args)]
struct ConfigFile {
    /// The config file.
    #[arg(short, long, env = "TOLLGATE_CONFIG", default_value = "tollgate.toml")]
    config: PathBuf,
}

#[derive(Subcommand)]
enum Command {
    /// Runs the gateway.
    Serve(ConfigFile),
    /// Validates the config and prints what takes effect; every fault at once.
    Check(ConfigFile),
    /// Shows how a request would be read, and what would be sent. Calls nobody.
    Explain(explain::Arguments),
    /// Runs gateway and sandbox providers in one process: no network, no key, no files left behind.
    Demo(demo::Arguments),
    /// Runs a metered stand-in for the providers.
    Sandbox {
        /// Where to listen.
        #[arg(long, default_value = "127.0.0.1:0")]
        listen: SocketAddr,
        /// Faults to play, as TOML.
        #[arg(long)]
        script: Option<PathBuf>,
    },
    /// Shows what was paid, what would have been, and why not, from the ledger of the running gateway.
    Bill(bill::Arguments),
    /// Sets a kill switch of the running gateway, or shows what holds.
    Switch(switch::Arguments),
    /// Lists paid writes of which nobody knows what came of them, or settles one.
    Writes(writes::Arguments),
    /// Makes a caller key: prints it once, with the config lines that hold only its SHA-256.
    Key(key::Arguments),
}

/// Runs the command the process was started with.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.command) {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Key(arguments) => Ok(key::run(&arguments)),
        Command::Check(file) => Ok(check::run(&file.config)),
        Command::Serve(file) => runtime()?.block_on(serve::run(&file.config)),
        Command::Explain(arguments) => runtime()?.block_on(explain::run(&arguments)),
        Command::Switch(arguments) => runtime()?.block_on(switch::run(&arguments)),
        Command::Writes(arguments) => one_thread()?.block_on(writes::run(&arguments)),
        Command::Demo(arguments) => runtime()?.block_on(demo::run(&arguments)),
        Command::Bill(arguments) => one_thread()?.block_on(bill::run(&arguments)),
        Command::Sandbox { listen, script } => {
            runtime()?.block_on(crate::sandbox::run(listen, script.as_deref())).map(|()| ExitCode::SUCCESS)
        }
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

fn one_thread() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Wrong arguments, as clap has it.
const WRONG_ARGUMENTS: u8 = 2;
/// 78 (`EX_CONFIG`) where the config is wrong.
const WRONG_CONFIG: u8 = 78;

fn fail(error: &anyhow::Error) -> ExitCode {
    eprintln!("tollgate: {error:#}");
    let config = error.downcast_ref::<Faults>().is_some() || error.downcast_ref::<crate::sandbox::ScriptError>().is_some();
    if error.downcast_ref::<admin::WrongArgument>().is_some() {
        return ExitCode::from(WRONG_ARGUMENTS);
    }
    if config { ExitCode::from(WRONG_CONFIG) } else { ExitCode::FAILURE }
}
