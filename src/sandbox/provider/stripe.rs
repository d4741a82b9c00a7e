//! Stripe payment intents: `POST /v1/payment_intents`, with `Idempotency-Key`.
//!
//! What the endpoint answered once is answered again under the same key, and billed no more; while it is being answered, its key is
//! in use. Refused parameters and credentials are not kept. A scripted fault stands in front of the record: what it puts in place of
//! an answer is not kept either (Stripe keeps the 500s of its endpoint), and with `close`, `reset` or `hang` the payment was made.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::{HeaderName, Method, StatusCode};
use serde_json::{Value, json};

use crate::clock::Timestamp;
use crate::sandbox::answer::Answer;
use crate::sandbox::asked::{Asked, first};

/// Where it lives.
pub const PATH: &str = "/v1/payment_intents";
/// Keys remembered; the oldest is forgotten first.
const MOST_KEYS: usize = 10_000;
const REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// The question, as it was received.
pub fn question(asked: &Asked) -> String {
    let form = asked.form();
    format!("{} {}", first(&form, "amount").unwrap_or("(no amount)"), first(&form, "currency").unwrap_or("(no currency)"))
}

/// The body that goes with an HTTP error.
pub fn failure(kind: &str, message: &str, param: Option<(&str, &str)>) -> Value {
    let mut error = json!({"message": message, "type": kind});
    if let (Some((code, param)), Some(error)) = (param, error.as_object_mut()) {
        error.insert("code".to_owned(), code.into());
        error.insert("param".to_owned(), param.into());
    }
    json!({"error": error})
}

/// The intents made so far.
#[derive(Debug, Default)]
pub struct Payments(Mutex<Book>);

/// An account's key.
type Key = (String, String);

#[derive(Debug, Default)]
struct Book {
    made: u64,
    in_use: HashSet<Key>,
    kept: HashMap<Key, Kept>,
    order: VecDeque<Key>,
}

/// A key that is in use until its answer is on its way.
#[derive(Debug)]
pub struct InUse<'a>(&'a Payments, Option<Key>);

impl Drop for InUse<'_> {
    fn drop(&mut self) {
        if let Some(key) = &self.1 {
            self.0.book().in_use.remove(key);
        }
    }
}

#[derive(Debug)]
struct Kept {
    request: Bytes,
    answer: Answer,
}

impl Payments {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a request's key into use, if it has one for here; nothing, if another request has it.
    pub fn take(&self, asked: &Asked) -> Option<InUse<'_>> {
        let key = account(asked).zip(asked.header("idempotency-key").map(str::to_owned)).filter(|_| asked.path == PATH);
        let free = key.as_ref().is_none_or(|key| self.book().in_use.insert(key.clone()));
        free.then_some(InUse(self, key))
    }

    /// Answers one request.
    pub fn answer(&self, asked: &Asked, now: Timestamp) -> Answer {
        if asked.method != Method::POST {
            return refused(StatusCode::METHOD_NOT_ALLOWED, "only POST is served here", None);
        }
        let Some(account) = account(asked) else {
            return refused(StatusCode::UNAUTHORIZED, "You did not provide an API key.", None);
        };
        let mut book = self.book();
        match asked.header("idempotency-key") {
            None => book.make(asked, now),
            Some(key) if key.len() > 255 => refused(StatusCode::BAD_REQUEST, "Idempotency-Key: 255 characters at most.", None),
            Some(key) => book.once((account, key.to_owned()), asked, now),
        }
    }
}

impl Book {
    fn once(&mut self, key: Key, asked: &Asked, now: Timestamp) -> Answer {
        if let Some(kept) = self.kept.get(&key) {
            return if kept.request == asked.body {
                kept.answer.clone().with(REPLAYED, "true").billed(0)
            } else {
                let message = "Keys for idempotent requests can only be used with the same parameters they were first used with.";
                Answer::json(StatusCode::BAD_REQUEST, &failure("idempotency_error", message, None))
            };
        }
        let answer = self.make(asked, now);
        if answer.status.is_success() {
            self.keep(key, asked.body.clone(), answer.clone());
        }
        answer
    }

    fn keep(&mut self, key: Key, request: Bytes, answer: Answer) {
        if self.order.len() >= MOST_KEYS
            && let Some(oldest) = self.order.pop_front()
        {
            self.kept.remove(&oldest);
        }
        self.order.push_back(key.clone());
        self.kept.insert(key, Kept { request, answer });
    }

    fn make(&mut self, asked: &Asked, now: Timestamp) -> Answer {
        let form = asked.form();
        let missing = |name| refused(StatusCode::BAD_REQUEST, "Missing required param.", Some(("parameter_missing", name)));
        let (Some(amount), Some(currency)) = (first(&form, "amount"), first(&form, "currency")) else {
            return missing(if first(&form, "amount").is_none() { "amount" } else { "currency" });
        };
        let Some(amount) = amount.parse::<u32>().ok().filter(|amount| *amount > 0) else {
            return refused(StatusCode::BAD_REQUEST, "Invalid integer.", Some(("parameter_invalid_integer", "amount")));
        };
        self.made = self.made.saturating_add(1);
        Answer::ok(&intent(self.made, amount, &currency.to_lowercase(), now))
    }
}

/// What a request is answered whose key is in use.
pub fn in_use() -> Answer {
    let mut body = failure("idempotency_error", "There is currently another in-progress request using this key.", None);
    if let Some(error) = body.pointer_mut("/error").and_then(Value::as_object_mut) {
        error.insert("code".to_owned(), "idempotency_key_in_use".into());
    }
    Answer::json(StatusCode::CONFLICT, &body)
}

fn account(asked: &Asked) -> Option<String> {
    asked.bearer().map(str::to_owned).or_else(|| asked.basic_user())
}

fn refused(status: StatusCode, message: &str, param: Option<(&str, &str)>) -> Answer {
    Answer::json(status, &failure("invalid_request_error", message, param))
}

fn intent(number: u64, amount: u32, currency: &str, now: Timestamp) -> Value {
    let id = format!("pi_{number:024}");
    json!({
        "amount": amount,
        "amount_received": 0,
        "capture_method": "automatic",
        "client_secret": format!("{id}_secret_sandbox"),
        "confirmation_method": "automatic",
        "created": now.seconds(),
        "currency": currency,
        "id": id,
        "livemode": false,
        "metadata": {},
        "object": "payment_intent",
        "payment_method": null,
        "payment_method_types": ["card"],
        "status": "requires_payment_method",
    })
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn post(payments: &Payments, key: &str, form: &'static str) -> Answer {
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "Bearer sk_test".parse().unwrap());
        headers.insert("idempotency-key", key.parse().unwrap());
        let mut asked = Asked::head(Method::POST, &PATH.parse().unwrap(), headers);
        asked.body = form.into();
        payments.answer(&asked, Timestamp(0))
    }

    #[test]
    fn the_same_key_gets_the_same_intent_and_says_so() {
        let payments = Payments::default();
        let first = post(&payments, "a", "amount=1099&currency=eur");
        let again = post(&payments, "a", "amount=1099&currency=eur");
        assert_eq!((first.status, &first.body), (StatusCode::OK, &again.body));
        assert_eq!((first.headers.get(&REPLAYED), again.headers[&REPLAYED].as_bytes()), (None, b"true".as_slice()));
        assert_eq!((first.units, again.units), (1, 0));
        assert_ne!(post(&payments, "b", "amount=1099&currency=eur").body, first.body);
    }

    #[test]
    fn the_same_key_with_other_parameters_is_an_error() {
        let payments = Payments::default();
        post(&payments, "a", "amount=1099&currency=eur");
        let other = post(&payments, "a", "amount=2099&currency=eur");
        let body: Value = serde_json::from_slice(&other.body).unwrap();
        assert_eq!((other.status.as_u16(), &body["error"]["type"]), (400, &json!("idempotency_error")));
    }

    #[test]
    fn refused_parameters_are_not_kept() {
        let payments = Payments::default();
        assert_eq!(post(&payments, "a", "currency=eur").status, StatusCode::BAD_REQUEST);
        assert_eq!(post(&payments, "a", "amount=-5&currency=eur").status, StatusCode::BAD_REQUEST);
        assert_eq!(post(&payments, "a", "amount=5&currency=eur").status, StatusCode::OK);
        assert_eq!(payments.answer(&Asked { method: Method::POST, ..Asked::default() }, Timestamp(0)).status, 401);
    }
}
