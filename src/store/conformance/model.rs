//! What a store of money is to do, said as plainly as can be: a list of attempts, and all else counted from it anew. Nothing of the
//! backends' own rules is used here.

use std::collections::BTreeMap;

use super::super::money::{Cap, Reserved, Row, Settlement};

/// Day, route, provider, caller, state, outcome, currency.
pub type Kind = [String; 7];

#[derive(Default)]
pub struct Model {
    attempts: Vec<Attempt>,
    given_up: Vec<u128>,
}

struct Attempt {
    id: u128,
    caps: Vec<String>,
    price: u64,
    cost: u64,
    state: &'static str,
    outcome: String,
    row: Row,
}

impl Attempt {
    fn counts(&self) -> u64 {
        match self.state {
            "billed" => self.cost,
            "not_billed" => 0,
            _ => self.price,
        }
    }

    fn times(&self, cap: &str) -> u64 {
        self.caps.iter().map(|name| u64::from(name == cap)).sum()
    }
}

impl Model {
    pub fn reserve(&mut self, id: u128, caps: &[Cap], price: u64, row: Row) -> Reserved {
        if self.given_up.contains(&id) {
            return Reserved::TooLate;
        }
        if !self.attempts.iter().any(|attempt| attempt.id == id) {
            let names = caps.iter().map(|cap| cap.name.clone()).collect();
            self.attempts.push(Attempt { id, caps: names, price, cost: 0, state: "open", outcome: String::new(), row });
            if let Some(cap) = caps.iter().position(|cap| self.used(&cap.name) > cap.most) {
                self.attempts.pop();
                return Reserved::No { cap, used: self.used(&caps[cap].name) };
            }
        }
        Reserved::Yes(caps.iter().map(|cap| self.used(&cap.name)).collect())
    }

    pub fn settle(&mut self, id: u128, settlement: Settlement, outcome: &str) -> bool {
        let Some(attempt) = self.attempts.iter_mut().find(|attempt| attempt.id == id) else {
            self.given_up.push(id);
            return false;
        };
        (attempt.state, attempt.cost) = match (attempt.state, settlement) {
            ("open" | "unknown", Settlement::Billed(cost)) => ("billed", cost),
            ("open" | "unknown", Settlement::NotBilled) => ("not_billed", 0),
            ("open", Settlement::Unknown) => ("unknown", 0),
            _ => return false,
        };
        outcome.clone_into(&mut attempt.outcome);
        true
    }

    /// The process has died, and another one is there.
    pub fn crash(&mut self) {
        for attempt in self.attempts.iter_mut().filter(|attempt| attempt.state == "open") {
            (attempt.state, attempt.outcome) = ("unknown", "orphaned".to_owned());
        }
    }

    pub fn used(&self, cap: &str) -> u64 {
        self.attempts.iter().map(|attempt| attempt.times(cap) * attempt.counts()).sum()
    }

    /// The price of an attempt, if it is still to be settled.
    pub fn unsettled(&self, id: u128) -> Option<u64> {
        let attempt = self.attempts.iter().find(|attempt| attempt.id == id)?;
        matches!(attempt.state, "open" | "unknown").then_some(attempt.price)
    }

    /// Has anything in it cost more than was reserved?
    pub fn overrun(&self, cap: &str) -> bool {
        self.attempts.iter().any(|attempt| attempt.times(cap) > 0 && attempt.counts() > attempt.price)
    }

    /// Calls and micros of each kind.
    pub fn spent(&self) -> BTreeMap<Kind, (u64, u64)> {
        let mut sums = BTreeMap::new();
        for attempt in &self.attempts {
            let Row { day, route, provider, caller_name, currency, .. } = attempt.row.clone();
            let caller = caller_name.unwrap_or_else(|| format!("{:032x}", attempt.row.caller)[..8].to_owned());
            let kind = [day, route, provider, caller, attempt.state.to_owned(), attempt.outcome.clone(), currency];
            let (calls, micros) = sums.entry(kind).or_insert((0, 0));
            (*calls, *micros) = (*calls + 1, *micros + attempt.counts());
        }
        sums
    }
}
