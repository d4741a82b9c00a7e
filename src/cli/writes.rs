//! `tollgate writes`: which paid writes of a running gateway are unknown, and settling one by what was found out.

use std::process::ExitCode;

use anyhow::Context as _;
use http::Method;
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::admin::{Gateway, WrongArgument};
use crate::question::wire::encode;

mod told;

use told::{Listed, Settled};

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Which: those of which nobody knows what came, or those whose owner is still at it.
    #[arg(long, value_enum, default_value_t = State::Unknown)]
    state: State,
    /// Prints JSON, for machines.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    gateway: Gateway,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Says what came of an unknown write, once the provider has been asked.
    Settle(Settle),
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum State {
    /// Sent, and nobody is at it any more.
    Unknown,
    /// Being sent.
    Sending,
}

#[derive(clap::Args)]
struct Settle {
    /// As `tollgate writes` lists it.
    id: String,
    #[command(flatten)]
    outcome: Outcome,
    /// What whoever asks again gets: the status, 200 unless given.
    #[arg(long, conflicts_with = "not_sent")]
    status: Option<u16>,
    /// And the body: text, or the file after an @; {} unless given.
    #[arg(long, value_name = "TEXT|@FILE", conflicts_with = "not_sent")]
    body: Option<String>,
    #[command(flatten)]
    gateway: Gateway,
}

#[derive(clap::Args)]
#[group(required = true, multiple = false)]
struct Outcome {
    /// The provider has done it: whoever asks again gets the answer, and it is paid.
    #[arg(long)]
    sent: bool,
    /// It has not, and will not: whoever asks again sends it, and it is not paid.
    #[arg(long)]
    not_sent: bool,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        None => list(arguments).await,
        Some(Command::Settle(settle)) => settle.run().await,
    }
}

async fn list(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let state = arguments.state.word();
    let answer: Json = arguments.gateway.client()?.get(&format!("/v1/writes?state={state}")).await?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&answer)?);
    } else {
        let listed = Listed::deserialize(answer).context("the gateway is none of this version")?;
        print!("{}", listed.told(arguments.state));
    }
    Ok(ExitCode::SUCCESS)
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Sending => "sending",
        }
    }
}

impl Settle {
    async fn run(&self) -> anyhow::Result<ExitCode> {
        let body = self.body.as_deref().map(content).transpose()?;
        let client = self.gateway.client()?;
        let mut path = "/v1/writes/".to_owned();
        encode(&self.id, &mut path);
        path.push_str("/settle");
        let outcome = if self.outcome.sent { "sent" } else { "not_sent" };
        let report = json!({ "outcome": outcome, "status": self.status, "body": body });
        let settled: Settled = client.call(Method::POST, &path, Some(report)).await?;
        print!("{}", settled.told(self.outcome.sent));
        Ok(ExitCode::SUCCESS)
    }
}

/// Text as it is, or what is in the file that it names.
fn content(text: &str) -> Result<String, WrongArgument> {
    match text.strip_prefix('@') {
        None => Ok(text.to_owned()),
        Some(file) => std::fs::read_to_string(file).map_err(|error| WrongArgument(format!("--body: {file}: {error}"))),
    }
}
