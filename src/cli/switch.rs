//! `tollgate switch`: sets a kill switch of a running gateway, and says what holds then.

use std::fmt::Write as _;
use std::process::ExitCode;

use http::Method;
use serde::Deserialize;
use serde_json::json;

use super::admin::Gateway;
use crate::clock::Timestamp;
use crate::question::wire::encode;

#[derive(clap::Args)]
pub(super) struct Arguments {
    /// A route, or `all`.
    route: String,
    /// What it is set to; without it, what holds is only shown.
    #[arg(value_enum)]
    state: Option<State>,
    /// Why, in words: kept with the switch, and in the log.
    #[arg(long, default_value = "", requires = "state")]
    reason: String,
    /// Whose stop `on` ends, if not the admin's: `budget`, for instance.
    #[arg(long, value_name = "MAKER", requires = "state")]
    maker: Option<String>,
    #[command(flatten)]
    gateway: Gateway,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum State {
    /// Everything passes.
    On,
    /// Only what is stored.
    Cached,
    /// Nothing.
    Off,
}

/// What the gateway says of a switch.
#[derive(Deserialize)]
struct Holds {
    state: String,
    #[serde(default)]
    stops: Vec<Stop>,
}

#[derive(Deserialize)]
struct Stop {
    of: String,
    maker: String,
    state: String,
    reason: String,
    since: u64,
    until: Option<u64>,
}

pub(super) async fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let client = arguments.gateway.client()?;
    let mut path = "/v1/switches/".to_owned();
    encode(&arguments.route, &mut path);
    let holds: Holds = match arguments.state {
        None => client.call(Method::GET, &path, None).await?,
        Some(state) => {
            let body = json!({ "state": state.word(), "reason": arguments.reason, "maker": arguments.maker });
            client.call(Method::PUT, &path, Some(body)).await?
        }
    };
    print!("{}", holds.told(&arguments.route));
    Ok(ExitCode::SUCCESS)
}

impl State {
    fn word(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Cached => "cached",
            Self::Off => "off",
        }
    }
}

impl Holds {
    fn told(&self, route: &str) -> String {
        let mut text = format!("{route} is {}\n", self.state);
        for stop in &self.stops {
            let Stop { of, maker, state, reason, .. } = stop;
            let of = if of == route { String::new() } else { format!(" ({of})") };
            let until = stop.until.map(|until| format!(" until {}", Timestamp::of_seconds(until).written())).unwrap_or_default();
            let reason = if reason.is_empty() { String::new() } else { format!(": {reason}") };
            let _ =
                writeln!(text, "  {state}{of} by {maker} since {}{until}{reason}", Timestamp::of_seconds(stop.since).written());
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stop_is_told_with_its_maker() {
        let holds: Holds = serde_json::from_value(json!({ "state": "off", "reason": "x", "since": 1, "stops": [
            { "of": "geo", "maker": "budget", "state": "off", "reason": "the day's is used up", "since": 0, "until": 86_400 },
            { "of": "all", "maker": "admin", "state": "cached", "reason": "", "since": 60 },
        ] }))
        .unwrap();
        let told = "geo is off\n  off by budget since 1970-01-01T00:00:00Z until 1970-01-02T00:00:00Z: the day's is used up\n  \
                    cached (all) by admin since 1970-01-01T00:01:00Z\n";
        assert_eq!(holds.told("geo"), told);
    }
}
