//! What was called and what it would have cost.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};

use serde::Serialize;

use super::provider::Provider;

/// Distinct questions kept for each provider; later ones share one row.
pub const MOST_QUESTIONS: usize = 1000;
/// Characters of a question that are kept.
const LONGEST_QUESTION: usize = 300;
/// The row of the questions beyond the most.
pub const OTHERS: &str = "(others)";

/// Counts calls. A call is counted when its request has been read, whatever becomes of the answer.
#[derive(Debug, Default)]
pub struct Meter(Mutex<BTreeMap<Provider, Row>>);

#[derive(Debug, Default)]
struct Row {
    calls: u64,
    billed: u64,
    micros: u64,
    questions: Vec<QuestionBill>,
    index: HashMap<String, usize>,
}

/// The bill so far.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct Bill {
    /// Calls to all providers.
    pub calls: u64,
    /// What they cost, in millionths.
    pub billed_micros: u64,
    /// Of this currency.
    pub currency: &'static str,
    /// By provider; those never called are absent.
    pub providers: BTreeMap<Provider, ProviderBill>,
}

/// One provider's share.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct ProviderBill {
    /// Calls received.
    pub calls: u64,
    /// How many of them were billed: of a write, how often it was done.
    pub billed: u64,
    /// What they cost, in millionths.
    pub billed_micros: u64,
    /// By question, in the order first asked.
    pub questions: Vec<QuestionBill>,
}

/// One question's share.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
pub struct QuestionBill {
    /// The question as the provider received it.
    pub question: String,
    /// How often it was asked.
    pub calls: u64,
    /// How many of those calls were billed.
    pub billed: u64,
}

impl Meter {
    /// Counts one call, billed `units` times the provider's list price.
    pub fn count(&self, provider: Provider, question: &str, units: u64) {
        let mut rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        rows.entry(provider).or_default().count(question, units, provider.price_micros());
    }

    /// The bill so far.
    pub fn snapshot(&self) -> Bill {
        let rows = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sum = |of: fn(&Row) -> u64| rows.values().map(of).fold(0, u64::saturating_add);
        Bill {
            calls: sum(|row| row.calls),
            billed_micros: sum(|row| row.micros),
            currency: "USD",
            providers: rows.iter().map(|(provider, row)| (*provider, row.bill())).collect(),
        }
    }

    /// Back to nothing.
    pub fn reset(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

impl Row {
    fn count(&mut self, question: &str, units: u64, price: u64) {
        self.calls = self.calls.saturating_add(1);
        self.billed = self.billed.saturating_add(u64::from(units > 0));
        self.micros = self.micros.saturating_add(units.saturating_mul(price));
        if let Some(row) = self.row(question) {
            row.calls = row.calls.saturating_add(1);
            row.billed = row.billed.saturating_add(u64::from(units > 0));
        }
    }

    fn row(&mut self, question: &str) -> Option<&mut QuestionBill> {
        let mut question: String = question.chars().take(LONGEST_QUESTION).collect();
        if self.questions.len() >= MOST_QUESTIONS && !self.index.contains_key(&question) {
            OTHERS.clone_into(&mut question);
        }
        let index = *self.index.entry(question.clone()).or_insert(self.questions.len());
        if index == self.questions.len() {
            self.questions.push(QuestionBill { question, calls: 0, billed: 0 });
        }
        self.questions.get_mut(index)
    }

    fn bill(&self) -> ProviderBill {
        ProviderBill { calls: self.calls, billed: self.billed, billed_micros: self.micros, questions: self.questions.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_and_money_are_counted_by_question() {
        let meter = Meter::default();
        meter.count(Provider::OpenCage, "Berlin", 1);
        meter.count(Provider::OpenCage, "Berlin", 0);
        meter.count(Provider::Twilio, "+1: hi", 2);
        let bill = meter.snapshot();
        assert_eq!((bill.calls, bill.billed_micros), (3, 5000 + 2 * 7900));
        let berlin = QuestionBill { question: "Berlin".into(), calls: 2, billed: 1 };
        assert_eq!(bill.providers[&Provider::OpenCage].questions, [berlin]);
        assert_eq!(bill.providers[&Provider::OpenCage].billed, 1);
        meter.reset();
        assert_eq!(meter.snapshot().calls, 0);
    }

    #[test]
    fn the_questions_kept_are_bounded_and_the_calls_are_not() {
        let meter = Meter::default();
        for number in 0..MOST_QUESTIONS + 50 {
            meter.count(Provider::Nominatim, &format!("q{number}"), 1);
        }
        meter.count(Provider::Nominatim, "q3", 1);
        let bill = meter.snapshot().providers[&Provider::Nominatim].clone();
        assert_eq!((bill.calls, bill.questions.len()), (1051, MOST_QUESTIONS + 1));
        let others = bill.questions.last().unwrap();
        assert_eq!((others.question.as_str(), others.calls, bill.questions[3].calls), (OTHERS, 50, 2));
    }
}
