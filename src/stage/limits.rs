//! Token buckets: a caller's, the route's, and those keyed on a field. All are tested, then all are debited, or none.
//!
//! Refuses `slow_down` where the caller's or a field's bucket is empty, `busy` where the route's is. A refusal is free. Hits
//! count, too: the buckets protect the gateway, the cache protects the bill.
//!
//! When the store is away a local share takes over (policy `local-share`), and is debited for calls the store did not confirm,
//! so that a flapping store does not give both.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use sha2::{Digest as _, Sha256};

use super::{Next, Stage, Verdict};
use crate::call::{Call, Caller, Journey};
use crate::clock::seconds_up;
use crate::config::section::Section;
use crate::config::units::Count;
use crate::provider::BucketRule;
use crate::question::Value;
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::store::handle::StoreHandle;
use crate::store::{Bucket, Level, OpId, Taken};

/// `limits` and `limits_by` of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    pub(crate) caller: Option<BucketRule>,
    pub(crate) route: Option<BucketRule>,
    pub(crate) cost: u32,
    /// Index of the field, its name, its bucket.
    pub(crate) by: Vec<(usize, String, BucketRule)>,
    /// `RateLimit-Policy`, the same on every response.
    pub(crate) policy: HeaderValue,
}

impl Config {
    pub(crate) fn read(section: &Section<'_>, fields: &[String]) -> Option<Self> {
        let mut config = Self { caller: None, route: None, cost: 1, by: Vec::new(), policy: HeaderValue::from_static("") };
        if let Some(limits) = section.section("limits") {
            config.caller = BucketRule::read_at(&limits, "caller");
            config.route = BucketRule::read_at(&limits, "route");
            config.cost = limits.or("cost", Count(1)).0;
            limits.finish();
        }
        for (name, below) in section.named("limits_by") {
            let rule = BucketRule::read(&below);
            match fields.iter().position(|field| field == name) {
                Some(index) => config.by.extend(rule.map(|rule| (index, name.to_owned(), rule))),
                None => section.fault("limits_by", format!("{name:?} is no field of the question"), "name a field of [question]"),
            }
            below.finish();
        }
        let some = config.caller.is_some() || config.route.is_some() || !config.by.is_empty();
        config.policy = policy(&config);
        some.then_some(config)
    }

    /// Every bucket with the key it stands under.
    pub(crate) fn rules(&self) -> impl Iterator<Item = (&'static str, BucketRule)> {
        let named = [("limits", self.caller), ("limits", self.route)];
        let named = named.into_iter().filter_map(|(key, rule)| Some((key, rule?)));
        named.chain(self.by.iter().map(|(_, _, rule)| ("limits_by", *rule)))
    }
}

/// The stage. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Limits(Arc<Shared>);

struct Shared {
    config: Config,
    route: String,
    route_id: u128,
    refuse_without_store: bool,
    store: StoreHandle,
}

const TOKEN: u64 = 1_000_000;

impl Limits {
    pub(crate) fn new(route: &Route, store: StoreHandle) -> Option<Self> {
        let config = route.limits.clone()?;
        Some(Self(Arc::new(Shared {
            route: route.name.clone(),
            route_id: identity(&[b"route", route.name.as_bytes()]),
            refuse_without_store: route.on_store_error.limits_refuse,
            config,
            store,
        })))
    }

    /// Looks without debit: for routes whose question is in the body, before the body is read.
    pub(crate) async fn look(&self, caller: &Caller, journey: &Journey) -> Result<(), Refusal> {
        self.0.take(caller, None, journey).await
    }
}

impl Stage for Limits {
    type In = Call;
    type Out = Call;

    async fn handle(&self, call: Call, next: &impl Next<Call>) -> Verdict {
        self.0.take(&call.caller, Some(&call), &call.journey).await?;
        next.run(call).await
    }
}

// === impl Shared ===

impl Shared {
    fn buckets(&self, caller: &Caller, call: Option<&Call>) -> Vec<Bucket> {
        let mut buckets = Vec::with_capacity(2 + self.config.by.len());
        if let Some(rule) = self.config.caller {
            // One caller has one bucket a route; both halves are digests already.
            buckets.push(self.bucket(self.route_id ^ caller.id, rule));
        }
        if let Some(rule) = self.config.route {
            buckets.push(self.bucket(self.route_id, rule));
        }
        for (name, value, rule) in self.fields(call) {
            let id = identity(&[b"field", self.route.as_bytes(), name.as_bytes(), value.key.as_bytes()]);
            buckets.push(self.bucket(id, rule));
        }
        buckets
    }

    /// The fields with a bucket that this question has.
    fn fields<'a>(&'a self, call: Option<&'a Call>) -> impl Iterator<Item = (&'a str, &'a Value, BucketRule)> {
        self.config.by.iter().filter_map(move |(index, name, rule)| {
            let value = call?.question.value(*index)?;
            Some((name.as_str(), value, *rule))
        })
    }

    /// The name of a bucket, by its place among those asked.
    fn name<'a>(&'a self, place: usize, call: Option<&'a Call>) -> &'a str {
        let caller = self.config.caller.map(|_| "caller");
        let route = self.config.route.map(|_| "route");
        let mut names = caller.into_iter().chain(route).chain(self.fields(call).map(|(name, ..)| name));
        names.nth(place).unwrap_or_default()
    }

    fn bucket(&self, id: u128, rule: BucketRule) -> Bucket {
        let cost = u64::from(self.config.cost) * TOKEN;
        Bucket { cost, ..Bucket::whole(id, rule.burst, rule.rate.count, rule.rate.per) }
    }

    /// Debits every bucket of a call, or none; without a call only looks.
    async fn take(&self, caller: &Caller, call: Option<&Call>, journey: &Journey) -> Result<(), Refusal> {
        let (buckets, debit) = (self.buckets(caller, call), call.is_some());
        if buckets.is_empty() {
            return Ok(());
        }
        let taken = match self.store.take(journey, OpId::random, &buckets, debit).await {
            Ok(taken) => taken,
            Err(error) if self.refuse_without_store => {
                self.store.fell_back("limits", "refuse");
                return Err(Refusal::new(Code::StoreUnavailable, "the limits cannot be read")
                    .after(Duration::from_secs(1))
                    .because(error));
            }
            Err(_) => {
                self.store.fell_back("limits", "local-share");
                self.store.local_share(&buckets, debit)
            }
        };
        // Told is the caller's bucket, where there is one, or the one that refuses.
        let tell = |place: usize, levels: &[Level]| {
            let remaining = levels.get(place).and_then(|level| remaining(self.name(place, call), *level));
            if let Some(remaining) = remaining {
                journey.set_remaining(remaining);
            }
        };
        match taken {
            Taken::Yes(levels) => {
                // A look tells nothing: the debit that follows does.
                if debit {
                    tell(0, &levels);
                }
                Ok(())
            }
            Taken::No { bucket, wait, levels } => {
                tell(bucket, &levels);
                if wait == Duration::MAX {
                    return Err(Refusal::new(Code::CostTooHigh, "the request costs more than the limit ever holds"));
                }
                Err(self.refusal(buckets.get(bucket).map(|bucket| bucket.id), wait))
            }
        }
    }

    fn refusal(&self, bucket: Option<u128>, wait: Duration) -> Refusal {
        let (code, detail) = if bucket == Some(self.route_id) {
            (Code::Busy, "the route has all the requests it takes")
        } else {
            (Code::SlowDown, "you are asking faster than the limit")
        };
        Refusal::new(code, detail).after(wait)
    }
}

/// 128 bits of a SHA-256 over length-prefixed parts.
pub(crate) fn identity(parts: &[&[u8]]) -> u128 {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update((part.len() as u64).to_be_bytes());
        hasher.update(part);
    }
    let digest: [u8; 32] = hasher.finalize().into();
    let (high, _) = digest.split_at(16);
    u128::from_be_bytes(high.try_into().unwrap_or_default())
}

/// `RateLimit-Policy`: every bucket with its size, and how long it takes to fill.
fn policy(config: &Config) -> HeaderValue {
    let (caller, route) = (config.caller.map(|rule| ("caller", rule)), config.route.map(|rule| ("route", rule)));
    let fields = config.by.iter().map(|(_, name, rule)| (name.as_str(), *rule));
    let items: Vec<String> = caller
        .into_iter()
        .chain(route)
        .chain(fields)
        .map(|(name, rule)| {
            let full = rule.rate.per.saturating_mul(rule.burst) / u32::try_from(rule.rate.count).unwrap_or(u32::MAX).max(1);
            format!("\"{name}\";q={};w={}", rule.burst, seconds_up(full))
        })
        .collect();
    HeaderValue::from_str(&items.join(", ")).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// `RateLimit` for one bucket.
fn remaining(name: &str, level: Level) -> Option<HeaderValue> {
    let (mut left, mut full) = (itoa::Buffer::new(), itoa::Buffer::new());
    // Written without `format!`, in exactly the room it takes: every answer of a route with limits carries it.
    let text = ["\"", name, "\";r=", left.format(level.left / TOKEN), ";t=", full.format(seconds_up(level.full_in))].concat();
    HeaderValue::try_from(text).ok()
}
