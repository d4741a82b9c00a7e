//! The paid call: the only file that spends money.
//!
//! The client follows no redirect, uses no proxy, and retries nothing by itself. What goes out is built from the template alone:
//! no header or address of the client leaves the house, and the credential is added last. What comes back is read whole, bounded
//! in size and time, decoded once, classified, and cleaned for sharing.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, StatusCode};
use tokio::task::JoinHandle;

use crate::alerts::{Alerts, Kind};
use crate::answer::{Answer, Kept, Outcome, Source};
use crate::call::{Attempt, Call, Journey};
use crate::clock::{Clock, Timestamp};
use crate::money::Money;
use crate::money::toll::Toll;
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::stage::idempotency::write::Write;
use crate::stage::{Next, Verdict};
use crate::store::money::Settlement;
use crate::telemetry::Metrics;

pub(crate) mod client;
mod departure;
mod headers;

pub(crate) use headers::LONGEST_WAIT;

use client::Client;
use departure::{Departing, Departure};

/// The end of the path.
#[derive(Clone)]
pub(crate) struct Upstream(Arc<Shared>);

struct Shared {
    route: Arc<Route>,
    client: Client,
    clock: Clock,
    metrics: Arc<Metrics>,
    alerts: Alerts,
}

/// What came of one exchange, before it is judged.
struct Exchange {
    status: StatusCode,
    headers: http::HeaderMap,
    body: Bytes,
}

/// An exchange that gave no whole answer.
struct Broken {
    code: Code,
    /// Provably nothing was sent, so nothing can be billed.
    unsent: bool,
    cause: String,
}

impl Upstream {
    pub(crate) fn new(route: &Arc<Route>, client: Client, clock: Clock, metrics: Arc<Metrics>, alerts: Alerts) -> Self {
        Self(Arc::new(Shared { route: Arc::clone(route), client, clock, metrics, alerts }))
    }
}

impl Next<Attempt> for Upstream {
    async fn run(&self, attempt: Attempt) -> Verdict {
        let shared = &*self.0;
        let provider = &*shared.route.provider;
        let write = attempt.call.write.as_ref();
        let departure = write.map(|write| Departure::new(Arc::clone(write)));
        let mut air = InAir {
            shared,
            journey: &attempt.call.journey,
            write,
            began: shared.clock.ticks(),
            toll: attempt.toll,
            landed: None,
            counted: false,
        };
        air.takes_off();
        let mut exchange = match tokio::time::timeout(provider.timeout, shared.exchange(&attempt.call, departure.as_ref())).await
        {
            Ok(exchange) => exchange,
            Err(_) => Err(Broken { code: Code::UpstreamTimeout, unsent: false, cause: "no whole answer in time".into() }),
        };
        if let (Some(departure), Err(broken)) = (departure, &mut exchange) {
            broken.unsent |= departure.call_off();
        }
        let (verdict, outcome, cost) = match exchange {
            Ok(exchange) => {
                let real = shared.real_cost(&exchange);
                let concludes = write.is_none_or(|write| !write.was_unclear() || shared.concludes(&exchange));
                let (verdict, outcome) = shared.judge(exchange);
                match write {
                    // A failure that was answered does not say that nothing was done.
                    Some(_) if outcome == Outcome::Failed => (verdict.map_err(unknown), Outcome::Unknown, Cost::Unknown),
                    _ => {
                        let verdict = if concludes { verdict } else { verdict.and_then(|_| Err(says_nothing(outcome))) };
                        (verdict, outcome, if provider.bills(outcome) { Cost::Billed(real) } else { Cost::None })
                    }
                }
            }
            Err(broken) => {
                let refusal = Refusal::new(broken.code, "the provider did not answer").because(broken.cause);
                // Sent, and nobody knows whether it was billed: it counts, even where failures that were answered do not.
                let outcome = if write.is_some() && !broken.unsent { Outcome::Unknown } else { Outcome::Failed };
                (Err(refusal.of(outcome)), outcome, if broken.unsent { Cost::None } else { Cost::Unknown })
            }
        };
        air.landed = Some((outcome, cost));
        // Nobody waits for a good answer's money to be settled. After a failure it may be what the next attempt needs.
        match air.settle() {
            Some(settling) if verdict.is_err() => drop(tokio::time::timeout(SETTLING, settling).await),
            _ => {}
        }
        verdict
    }
}

/// Whether it had its effect, nobody knows.
fn unknown(refusal: Refusal) -> Refusal {
    refusal.of(Outcome::Unknown)
}

/// An answer from in front of the provider's record of keys, to a write that was sent before.
fn says_nothing(outcome: Outcome) -> Refusal {
    Refusal::new(Code::UpstreamFailed, "the provider's answer does not say what came of the first request").of(outcome)
}

/// How long a failure waits for its money to be settled.
const SETTLING: Duration = Duration::from_millis(250);

/// What an attempt cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cost {
    None,
    /// The price that was set aside, or what the answer says.
    Billed(Option<u64>),
    Unknown,
}

/// An attempt on the wire: counted when it ends, however it ends. One that is cut off by its flight's end or by a panic was sent,
/// and nobody knows what became of it.
struct InAir<'a> {
    shared: &'a Shared,
    journey: &'a Journey,
    write: Option<&'a Arc<Write>>,
    began: Timestamp,
    toll: Option<Toll>,
    /// What it came to, and what it cost.
    landed: Option<(Outcome, Cost)>,
    counted: bool,
}

impl InAir<'_> {
    fn takes_off(&self) {
        if let Some(write) = self.write {
            write.takes_off();
        }
    }

    /// Ends the attempt.
    fn settle(mut self) -> Option<JoinHandle<()>> {
        self.account()
    }

    /// Tells the write. Gives what is to be counted as spent: what is sent again is spent once.
    fn lands(&self, outcome: Outcome, toll: Option<&Toll>, spent: Option<Money>) -> Option<Money> {
        let Some(write) = self.write else { return spent };
        let micros = spent.map_or(0, |spent| spent.micros);
        let more = write.landed(outcome == Outcome::Unknown, toll.map(Toll::id), micros);
        spent.map(|spent| Money { micros: more, ..spent }).filter(|spent| spent.micros > 0)
    }

    fn account(&mut self) -> Option<JoinHandle<()>> {
        self.counted = true;
        let took = self.shared.clock.ticks().since(self.began);
        self.journey.attempt(took);
        let (outcome, cost) = self.landed.unwrap_or((Outcome::Unknown, Cost::Unknown));
        let toll = self.toll.take();
        let price = toll.as_ref().map(|toll| toll.amount);
        let (settlement, spent) = match cost {
            Cost::None => (Settlement::NotBilled, None),
            Cost::Billed(real) => {
                let cost = price.map(|price| Money { micros: real.unwrap_or(price.micros), ..price });
                (Settlement::Billed(cost.map_or(0, |cost| cost.micros)), cost)
            }
            Cost::Unknown => (Settlement::Unknown, price),
        };
        let spent = self.lands(outcome, toll.as_ref(), spent);
        self.shared.account(outcome, cost != Cost::None, spent, took);
        Some(toll?.settle(settlement, outcome.word()))
    }
}

impl Drop for InAir<'_> {
    fn drop(&mut self) {
        if !self.counted {
            self.account();
        }
    }
}

// === impl Shared ===

impl Shared {
    fn account(&self, outcome: Outcome, billed: bool, spent: Option<Money>, took: Duration) {
        let provider = &*self.route.provider;
        self.metrics.attempt(&provider.name, outcome, billed, took);
        if let Some(cost) = spent {
            self.metrics.spent(&self.route.name, cost);
        }
        if outcome == Outcome::Denied {
            tracing::error!(
                provider = provider.name,
                route = self.route.name,
                "the provider refuses our credential: nothing will work until it is mended"
            );
            let told = || "the provider refuses our credential: nothing will work until it is mended".to_owned();
            self.alerts.provider(Kind::UpstreamDenied, &provider.name, told);
        }
    }

    async fn exchange(&self, call: &Call, departure: Option<&Arc<Departure>>) -> Result<Exchange, Broken> {
        let unsent = |cause: &str| Broken { code: Code::UpstreamFailed, unsent: true, cause: cause.to_owned() };
        let rendered = self.route.template.render(&call.question.0).ok_or_else(|| unsent("the request could not be built"))?;
        let mut request = self.client.request(&rendered).ok_or_else(|| unsent("the request could not be built"))?;
        if let (Some(idempotency), Some(key)) =
            (&self.route.provider.idempotency, call.write.as_ref().and_then(|w| w.provider_key()))
        {
            request = request.header(&idempotency.header, key);
        }
        request = match (rendered.body, departure) {
            (Some(body), Some(departure)) if !body.is_empty() => request.body(Departing::body(body, departure)),
            // Without a body there is nothing that could ask before it goes.
            (_, Some(departure)) if !departure.leave() => return Err(unsent("it is too late to send")),
            (Some(body), _) => request.body(body),
            (None, _) => request,
        };
        let mut response = request.send().await.map_err(broken)?;
        let (status, headers) = (response.status(), response.headers().clone());
        let most = self.route.provider.max_answer;
        let too_large =
            || Broken { code: Code::UpstreamFailed, unsent: false, cause: format!("the answer is larger than {most} bytes") };
        if response.content_length().is_some_and(|length| length > most as u64) {
            return Err(too_large());
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(broken)? {
            if body.len() + chunk.len() > most {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(Exchange { status, headers, body: body.freeze() })
    }

    /// Whether an answer says what came of a write that was sent before.
    fn concludes(&self, exchange: &Exchange) -> bool {
        let idempotency = self.route.provider.idempotency.as_ref();
        idempotency.is_none_or(|idempotency| idempotency.concludes(exchange.status, &exchange.headers))
    }

    /// What the answer says that it cost.
    fn real_cost(&self, exchange: &Exchange) -> Option<u64> {
        let at = self.route.provider.cost.as_ref()?;
        at.read(&serde_json::from_slice(&exchange.body).ok()?)
    }

    /// What an exchange means, and the cleaned answer if it is one.
    fn judge(&self, exchange: Exchange) -> (Verdict, Outcome) {
        let Exchange { status, headers, body } = exchange;
        let json = if headers::is_coded(&headers) { None } else { serde_json::from_slice(&body).ok() };
        let outcome = match status {
            // Nothing of ours asks for a part: whoever sends one has not given the answer.
            StatusCode::PARTIAL_CONTENT => Outcome::Failed,
            _ => self.route.rules.classify(status, json.as_ref()),
        };
        let verdict = match outcome {
            Outcome::Answered | Outcome::NotFound | Outcome::Weak | Outcome::Rejected => {
                Ok(self.answer(status, outcome, &headers, body))
            }
            Outcome::Busy => Err(self.refusal(Code::UpstreamBusy, "the provider is busy", status, &headers, outcome)),
            Outcome::Denied => {
                Err(self.refusal(Code::UpstreamDenied, "the provider refused the gateway", status, &headers, outcome))
            }
            Outcome::Failed | Outcome::Unknown => {
                Err(self.refusal(Code::UpstreamFailed, "the provider failed", status, &headers, outcome))
            }
        };
        (verdict, outcome)
    }

    fn refusal(
        &self,
        code: Code,
        detail: &'static str,
        status: StatusCode,
        headers: &http::HeaderMap,
        outcome: Outcome,
    ) -> Refusal {
        let refusal = Refusal::new(code, detail).because(format!("the provider answered {status}")).of(outcome);
        let own = self.route.provider.pause.filter(|_| outcome == Outcome::Busy);
        match headers::retry_after(headers, self.clock.now()).or(own) {
            // That our credential is refused is no matter of time.
            Some(wait) if outcome != Outcome::Denied => refusal.after(wait),
            _ => refusal,
        }
    }

    fn reveals(&self, body: &[u8]) -> bool {
        self.route.provider.credential.as_ref().is_some_and(|credential| credential.secret.is_in(body))
    }

    fn answer(&self, status: StatusCode, outcome: Outcome, headers: &http::HeaderMap, body: Bytes) -> Answer {
        let provider = &*self.route.provider;
        // An answer that repeats the request may hold our credential; it leaves without it.
        let body = match &provider.credential {
            Some(credential) if credential.secret.is_in(&body) => credential.secret.redact(&body),
            _ => body,
        };
        let now = self.clock.now();
        let policy = headers::Policy::read(headers, provider.respect_cache_control, &self.route.template);
        let reveals = |value: &HeaderValue| self.reveals(value.as_bytes());
        let allowed = headers::allowed(headers, self.route.writes.is_some(), reveals);
        let mut kept = Kept::passing(status, outcome, body, now).with_headers(allowed);
        kept.shareable = policy.shareable;
        kept.age = headers::age(headers);
        if let Some(cache) = self.route.cache
            && let Some(lifetime) = cache.lifetime(outcome).filter(|_| policy.storable)
        {
            kept.fresh_until = now.after(lifetime.saturating_sub(kept.age));
            let window = |stale: Duration| if policy.may_be_stale { kept.fresh_until.after(stale) } else { kept.fresh_until };
            (kept.revalidate_until, kept.error_until) = (window(cache.stale_while_revalidate), window(cache.stale_if_error));
        }
        Answer { kept: Arc::new(kept), source: Source::Upstream { stored: false } }
    }
}

/// The client's error texts may hold the URL, and with it the credential: only its kind and its causes are told.
fn broken(error: reqwest::Error) -> Broken {
    let code = if error.is_timeout() { Code::UpstreamTimeout } else { Code::UpstreamFailed };
    let unsent = error.is_connect() || error.is_builder();
    let error = error.without_url();
    let mut cause = error.to_string();
    let mut source = std::error::Error::source(&error);
    while let Some(inner) = source {
        cause.push_str(": ");
        cause.push_str(&inner.to_string());
        source = inner.source();
    }
    Broken { code, unsent, cause }
}

#[cfg(test)]
mod tests;
