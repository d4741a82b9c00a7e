//! `tollgate bill`: what was paid, what would have been, and why not, from the ledger of a running gateway.

use std::process::ExitCode;

use super::admin::{Client, Gateway};
use crate::money::bill::{Bill, Reports};
use crate::question::wire::encode;

pub(super) mod table;

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    gateway: Gateway,
    #[command(flatten)]
    asked: Asked,
    /// Prints JSON, for machines.
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args)]
pub(super) struct Asked {
    /// The first day: a date such as 2026-11-30, today, or month for its first day.
    #[arg(long, default_value = "month")]
    since: String,
    /// The last day, likewise.
    #[arg(long, default_value = "today")]
    until: String,
    /// A list of route, caller, day, cause: a row for each.
    #[arg(long, value_delimiter = ',', value_parser = ["route", "caller", "day", "cause"])]
    by: Vec<String>,
}

impl Asked {
    /// Today, in sum.
    pub(super) fn today() -> Self {
        Self { since: "today".to_owned(), until: "today".to_owned(), by: Vec::new() }
    }

    /// The path and query of one report.
    fn path(&self, report: &str, by: &[&str]) -> String {
        let mut path = format!("/v1/{report}?since=");
        encode(&self.since, &mut path);
        path.push_str("&until=");
        encode(&self.until, &mut path);
        path.push_str("&by=");
        path.push_str(&by.join(","));
        path
    }
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let bill = fetch(&arguments.gateway.client()?, &arguments.asked).await?;
    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&bill)?);
    } else {
        print!("{}", table::render(&bill));
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks the gateway.
pub(super) async fn fetch(client: &Client, asked: &Asked) -> anyhow::Result<Bill> {
    let by: Vec<&str> = asked.by.iter().map(String::as_str).collect();
    let without_cause: Vec<&str> = by.iter().copied().filter(|key| *key != "cause").collect();
    let spent = client.get(&asked.path("spend", &without_cause)).await?;
    let by_cause = client.get(&asked.path("savings", &["cause"])).await?;
    let saved = client.get(&asked.path("savings", &by)).await?;
    Ok(Bill::new(Reports { spent, by_cause, saved }))
}
