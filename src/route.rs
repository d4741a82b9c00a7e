//! `[routes.NAME]`: where an operation is exposed, for whom, and what a question of it looks like.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderName;

use crate::config::section::Section;
use crate::config::units::{Count, Size};
use crate::money::window::Zone;
use crate::money::{Budget, Money, PricedBy};
use crate::provider::outcome::Rules;
use crate::provider::template::Template;
use crate::provider::volatile::Volatile;
use crate::provider::{BucketRule, Provider};
use crate::question::Value;
use crate::question::field::{self, Field, Place};
use crate::question::kind::Kind;
use crate::stage::{cache, curated, idempotency, lease, limits, lockout};

pub(crate) mod check;
pub(crate) mod pattern;
pub(crate) mod reply;
pub(crate) mod send;

use pattern::Pattern;
use reply::Reply;

/// One route, its operation's preset included.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) name: String,
    pub(crate) provider: Arc<Provider>,
    pub(crate) expose: Pattern,
    /// Callers by name; none: every authenticated one.
    pub(crate) callers: Option<BTreeSet<String>>,
    pub(crate) version: u32,
    /// One caller's answer serves no other.
    pub(crate) per_caller: bool,
    pub(crate) coalesce: bool,
    /// Refusals wear the provider's shape.
    pub(crate) native: bool,
    pub(crate) fields: Vec<Field>,
    pub(crate) pinned: Vec<Pinned>,
    pub(crate) ignored: Ignored,
    /// Alternatives of fields, by index, of which one must be there.
    pub(crate) one_of: Vec<Vec<usize>>,
    /// Groups of fields whose values may change places.
    pub(crate) unordered: Vec<Vec<usize>>,
    pub(crate) template: Template,
    pub(crate) volatile: Volatile,
    pub(crate) rules: Rules,
    pub(crate) reply: Option<Reply>,
    pub(crate) deadline: Duration,
    pub(crate) max_body: usize,
    pub(crate) limits: Option<limits::Config>,
    pub(crate) lockout: Option<lockout::Config>,
    pub(crate) curated: Option<Arc<curated::Answers>>,
    pub(crate) cache: Option<cache::Config>,
    pub(crate) lease: lease::Config,
    /// A paid write: it is sent once for each intention, and nothing of it is shared.
    pub(crate) writes: Option<idempotency::Config>,
    pub(crate) refresh: Option<BucketRule>,
    pub(crate) refuse_weak: bool,
    pub(crate) budget: Option<Budget>,
    pub(crate) priced_by: PricedBy,
    /// What one call may cost at most.
    pub(crate) max_price: Option<Money>,
    pub(crate) on_store_error: Policies,
}

/// A value that is always sent and never taken from the caller.
#[derive(Clone, Debug)]
pub(crate) struct Pinned {
    pub(crate) name: String,
    pub(crate) place: Place,
    pub(crate) value: serde_json::Value,
}

impl Pinned {
    pub(crate) fn text(&self) -> String {
        self.value.as_str().map_or_else(|| self.value.to_string(), ToOwned::to_owned)
    }
}

/// What is dropped without a word.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ignored {
    pub(crate) query: BTreeSet<String>,
    pub(crate) form: BTreeSet<String>,
    /// JSON pointers.
    pub(crate) json: BTreeSet<String>,
}

/// What a stage does when the store does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Policies {
    /// Buckets: fall back to this instance's share, or refuse.
    pub(crate) limits_refuse: bool,
    /// Lockout: refuse, or let guesses through.
    pub(crate) lockout_refuse: bool,
    /// Cache: go on without it, or refuse.
    pub(crate) cache_refuse: bool,
    /// Lease: fly for this instance alone, or refuse.
    pub(crate) lease_refuse: bool,
}

/// What a route takes from `[server]` unless it says otherwise.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) deadline: Duration,
    pub(crate) max_body: usize,
}

impl Route {
    /// Reads one route; its table has the operation's preset merged below. All of it is read, whatever is wrong with a part.
    pub(crate) fn read(section: &Section<'_>, name: &str, provider: Arc<Provider>, defaults: Defaults) -> Self {
        let _: Option<String> = section.get("provider");
        let operation: Option<String> = section.get("operation");
        let expose = read_expose(section).unwrap_or_else(Pattern::unreadable);
        let mut fields = section.section("question").map(|section| field::read_all(&section)).unwrap_or_default();
        let pinned = read_pinned(section);
        // What is always sent is nothing that is asked, whatever the preset says.
        fields.retain(|field| !pinned.iter().any(|pinned| pinned.place.meets(&field.place)));
        let account = account(section, &provider, &mut fields);
        let names: Vec<String> = fields.iter().map(|field| field.name.clone()).collect();
        let reply = section.section("reply").map(|section| Reply::read(&section));
        let template = send::read(section, &expose, &fields, &pinned, account);
        let unordered = read_groups(section, "unordered", &names);
        let deadline = section.or("deadline", defaults.deadline);
        let route = Self {
            name: name.to_owned(),
            callers: section.list::<String>("callers").map(|callers| callers.into_iter().collect()),
            version: section.or("version", Count(1)).0,
            per_caller: read_word(section, "scope", &["shared", "caller"]) == 1,
            coalesce: section.or("coalesce", true),
            native: operation.is_some() && reply.is_none(),
            ignored: read_ignored(section),
            one_of: read_groups(section, "one_of", &names),
            volatile: Volatile::read(section, "volatile"),
            rules: Rules::read(section, "outcomes"),
            deadline,
            max_body: section.or("max_body", Size(defaults.max_body)).0,
            limits: limits::Config::read(section, &names),
            lockout: lockout::Config::read(section, &names),
            curated: curated::Answers::read(section, &fields, &unordered),
            cache: cache::Config::read(section),
            lease: lease::Config::read(section, deadline),
            writes: idempotency::Config::read(section, provider.connect_timeout),
            refresh: BucketRule::read_at(section, "refresh"),
            refuse_weak: read_on_weak(section, reply.is_some()),
            budget: Budget::read(section, true, provider.price.as_ref()),
            priced_by: PricedBy::read(section, &names),
            max_price: section.get("max_price"),
            on_store_error: read_policies(section.section_or_empty("on_store_error")),
            template,
            unordered,
            provider,
            expose,
            fields,
            pinned,
            reply,
        };
        check::route(section, &route);
        route
    }

    /// Each stage of this route that asks the store, with what it does without it.
    pub(crate) fn without_store(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let policies = self.on_store_error;
        let word = |refuse: bool, otherwise| if refuse { "refuse" } else { otherwise };
        let stages = [
            ("switch", true, "last-known"),
            ("limits", self.limits.is_some(), word(policies.limits_refuse, "local-share")),
            ("quota", self.provider.quota.is_some(), word(policies.limits_refuse, "local-share")),
            ("lockout", self.lockout.is_some(), word(policies.lockout_refuse, "pass")),
            ("cache", self.cache.is_some(), word(policies.cache_refuse, "pass")),
            ("lease", self.coalesce && self.writes.is_none(), word(policies.lease_refuse, "local")),
            ("writes", self.writes.is_some(), "refuse"),
        ];
        stages.into_iter().filter(|(_, has, _)| *has).map(|(stage, _, policy)| (stage, policy))
    }

    /// What a question of this route costs, if it costs something.
    pub(crate) fn price(&self, values: &[Option<Value>]) -> Option<Money> {
        let price = self.provider.price.as_ref().map(|price| price.of(&self.priced_by, values));
        price.filter(|price| price.micros > 0)
    }

    /// The zone its days are counted in: that of its own budget, or of its provider's.
    pub(crate) fn zone(&self) -> Zone {
        let budgets = [&self.budget, &self.provider.budget];
        let caps = budgets.into_iter().find_map(|budget| budget.as_ref().and_then(Budget::caps));
        caps.map_or_else(Zone::utc, |caps| caps.zone.clone())
    }

    /// Index of a field.
    pub(crate) fn field(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field.name == name)
    }

    /// The field that takes what no other claims of a form.
    pub(crate) fn rest(&self) -> Option<usize> {
        self.fields.iter().position(|field| field.kind == Kind::Rest)
    }

    /// Whether anything of the question stands in the body.
    pub(crate) fn reads_body(&self) -> bool {
        self.fields.iter().any(|field| field.place.in_body()) || self.pinned.iter().any(|pinned| pinned.place.in_body())
    }

    /// Whether the body is JSON (else, if it is read at all, a form).
    pub(crate) fn reads_json(&self) -> bool {
        self.fields
            .iter()
            .map(|field| &field.place)
            .chain(self.pinned.iter().map(|pinned| &pinned.place))
            .any(|place| matches!(place, Place::Json(_)))
    }
}

/// The field that names the account, by its index. Where we have one of our own, it stands for whatever a caller writes.
fn account(section: &Section<'_>, provider: &Provider, fields: &mut [Field]) -> Option<usize> {
    let name = provider.credential.as_ref()?.place.field()?;
    let index = fields.iter().position(|field| field.name == name);
    match (index.and_then(|index| fields.get_mut(index)), &provider.account) {
        (Some(field), Some(account)) => {
            if let Err(invalid) = field.stand_for(account) {
                let problem = format!("the account of {} is no {name}: it {}", provider.name, invalid.reason);
                section.fault("provider", problem, format!("write providers.{}.account", provider.name));
            }
        }
        (None, None) => {
            let problem = format!("nobody says as whom {} is called: the question has no {name}", provider.name);
            section.fault("provider", problem, format!("write providers.{}.account", provider.name));
        }
        _ => {}
    }
    index
}

fn read_expose(section: &Section<'_>) -> Option<Pattern> {
    const REMEDY: &str = "write a method and a path, such as expose = \"GET /v1/quote\"";
    if !section.has("expose") {
        section.fault("expose", "is missing", REMEDY);
    }
    let text: String = section.get("expose")?;
    Pattern::parse(&text).map_err(|problem| section.fault("expose", problem, REMEDY)).ok()
}

/// One of some words; the first is the default.
fn read_word(section: &Section<'_>, key: &'static str, words: &[&str]) -> usize {
    let word: String = section.or(key, words.first().copied().unwrap_or_default().to_owned());
    words.iter().position(|known| *known == word).unwrap_or_else(|| {
        section.fault(key, format!("{word:?} is not one of its words"), format!("write one of {}", words.join(", ")));
        0
    })
}

/// Passed on, unless the reply is of the route's own shape: it could not say how weak it is.
fn read_on_weak(section: &Section<'_>, own_shape: bool) -> bool {
    if own_shape {
        read_word(section, "on_weak", &["refuse", "pass"]) == 0
    } else {
        read_word(section, "on_weak", &["pass", "refuse"]) == 1
    }
}

fn read_pinned(section: &Section<'_>) -> Vec<Pinned> {
    let mut pinned = Vec::new();
    for (name, below) in section.named("pinned") {
        let place = Place::read(&below, name);
        let value = below.node("value").map(crate::config::node::Node::json);
        if value.is_none() {
            below.fault("value", "is missing", "write the value that is always sent");
        }
        if let Some(value) = &value {
            below.show("value", toml::Value::try_from(value).unwrap_or_else(|_| value.to_string().into()));
        }
        if let Some(Place::Path(_)) = place {
            below.fault("in", "a path has no place for a value that the caller does not give", "write it into send.path");
        }
        below.finish();
        if let (Some(place), Some(value)) = (place, value) {
            pinned.push(Pinned { name: name.to_owned(), place, value });
        }
    }
    pinned
}

fn read_ignored(section: &Section<'_>) -> Ignored {
    let Some(section) = section.section("ignored") else { return Ignored::default() };
    let list = |key| section.list::<String>(key).unwrap_or_default().into_iter().collect();
    let ignored = Ignored { query: list("query"), form: list("form"), json: list("json") };
    section.finish();
    ignored
}

/// A list of lists of field names.
fn read_groups(section: &Section<'_>, key: &'static str, names: &[String]) -> Vec<Vec<usize>> {
    use crate::config::node::Value;
    const REMEDY: &str = "write a list of lists of fields, such as [[\"from\", \"to\"]]";
    let Some(node) = section.node(key) else { return Vec::new() };
    let Value::Array(groups) = &node.value else {
        section.fault(key, format!("is {}", node.describe()), REMEDY);
        return Vec::new();
    };
    let mut read = Vec::new();
    for group in groups {
        let Value::Array(items) = &group.value else {
            section.fault(key, format!("holds {}", group.describe()), REMEDY);
            continue;
        };
        let mut indices = Vec::new();
        for item in items {
            match item.text().and_then(|text| names.iter().position(|name| name == text)) {
                Some(index) => indices.push(index),
                None => section.fault(key, format!("{} is no field of the question", item.describe()), REMEDY),
            }
        }
        read.push(indices);
    }
    let shown = read.iter().map(|group| group.iter().filter_map(|index| names.get(*index)).map(|name| name.as_str().into()));
    section.show(key, shown.map(|names| toml::Value::Array(names.collect())).collect::<Vec<_>>());
    read
}

fn read_policies(section: Section<'_>) -> Policies {
    // Said once here for every stage; those that leave no choice are read too, so that a file may state them.
    let word = |key, words: &[&str]| read_word(&section, key, words);
    let policies = Policies {
        limits_refuse: word("limits", &["local-share", "refuse"]) == 1,
        lockout_refuse: word("lockout", &["refuse", "pass"]) == 0,
        cache_refuse: word("cache", &["pass", "refuse"]) == 1,
        lease_refuse: word("lease", &["local", "refuse"]) == 1,
    };
    word("switch", &["last-known"]);
    word("budget", &["refuse"]);
    word("writes", &["refuse"]);
    section.finish();
    policies
}

/// A header the gateway itself must keep control of.
pub(crate) fn is_own_header(name: &HeaderName) -> bool {
    use http::header;
    [
        header::HOST,
        header::CONTENT_LENGTH,
        header::CONNECTION,
        header::TRANSFER_ENCODING,
        header::UPGRADE,
        header::TE,
        header::TRAILER,
        header::EXPECT,
        header::AUTHORIZATION,
        header::PROXY_AUTHORIZATION,
        header::COOKIE,
        header::CONTENT_TYPE,
        header::ACCEPT_ENCODING,
    ]
    .contains(name)
}
