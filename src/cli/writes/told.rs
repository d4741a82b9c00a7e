//! Writes in words, for whoever has to find out what came of them.

use serde::Deserialize;

use super::State;
use crate::cli::bill::table::columns;
use crate::clock::Timestamp;
use crate::money::decimal;

/// What the gateway lists.
#[derive(Deserialize)]
pub(super) struct Listed {
    writes: Vec<Write>,
    more: bool,
}

#[derive(Deserialize)]
struct Write {
    id: String,
    route: String,
    provider: String,
    caller: String,
    since: u64,
    settle_from: u64,
    price: Option<Price>,
    sends: u64,
    request_id: String,
    provider_key: Option<String>,
}

#[derive(Deserialize)]
struct Price {
    micros: u64,
    currency: String,
}

/// What it says of one that is settled.
#[derive(Deserialize)]
pub(super) struct Settled {
    #[serde(flatten)]
    write: Write,
    booked: bool,
}

impl Price {
    fn told(&self) -> String {
        format!("{} {}", decimal(self.micros), self.currency)
    }
}

impl Listed {
    pub(super) fn told(&self, state: State) -> String {
        if self.writes.is_empty() {
            let none = match state {
                State::Unknown => "No write is unknown: of all that was sent it is known what came of it.",
                State::Sending => "No write is being sent.",
            };
            let more = if self.more { "\nThere are too many in the other state to look through all." } else { "" };
            return format!("{none}{more}\n");
        }
        let title = ["id", "sent", "settle from", "route", "provider", "caller", "price", "sends", "request", "provider key"];
        let rows: Vec<[String; 10]> =
            std::iter::once(title.map(str::to_owned)).chain(self.writes.iter().map(Write::row)).collect();
        let mut text = columns(&rows, &[false, false, false, false, false, false, true, true, false, false]);
        if self.more {
            text.push_str("\nThere are more; these are the oldest.\n");
        }
        if matches!(state, State::Unknown) {
            text.push_str("\nAsk the provider what came of it, then: tollgate writes settle ID --sent | --not-sent\n");
        }
        text
    }
}

impl Write {
    fn row(&self) -> [String; 10] {
        let moment = |seconds| Timestamp::of_seconds(seconds).written();
        [
            self.id.clone(),
            moment(self.since),
            moment(self.settle_from),
            self.route.clone(),
            self.provider.clone(),
            self.caller.clone(),
            self.price.as_ref().map(Price::told).unwrap_or_default(),
            self.sends.to_string(),
            self.request_id.clone(),
            self.provider_key.clone().unwrap_or_default(),
        ]
    }
}

impl Settled {
    pub(super) fn told(&self, was_sent: bool) -> String {
        let Write { id, route, price, .. } = &self.write;
        let (outcome, then) = if was_sent { ("sent", "gets the answer") } else { ("not sent", "sends it") };
        let paid = price.as_ref().filter(|_| was_sent).map_or_else(|| "nothing".to_owned(), Price::told);
        let booked = if self.booked { "" } else { ", once the store has taken it down" };
        format!("{id} of {route} is settled as {outcome}: whoever asks again {then}.\nPaid for it: {paid}{booked}.\n")
    }
}
