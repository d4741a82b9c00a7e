//! From a decoded path to its route. Routing, authentication and keys use this one decoded path.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use http::{Method, Uri};

use crate::money::savings::Book;
use crate::question::wire::decode_segments;
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::route::pattern::Segment;
use crate::stack::Path;
use crate::stage::authenticate::Authenticate;
use crate::stage::validate::Validate;
use crate::telemetry::RouteMetrics;

/// A route with its request path and counters.
pub(crate) struct Entry {
    pub(crate) route: Arc<Route>,
    pub(crate) path: Path,
    pub(crate) metrics: RouteMetrics,
    pub(crate) book: Book,
    /// The stage that knows the route's keys, for those who ask outside the path.
    pub(crate) validate: Validate,
    pub(crate) authenticate: Authenticate,
}

/// All routes of one config.
#[derive(Default)]
pub(crate) struct Router {
    /// Paths without fields, as they are written: nothing in them needs decoding. A few comparisons cost less than a hash.
    exact: BTreeMap<String, Vec<Arc<Entry>>>,
    /// The others, the most literal first.
    patterns: Vec<Arc<Entry>>,
}

/// Where a request belongs.
pub(crate) struct Match<'a> {
    pub(crate) entry: &'a Arc<Entry>,
    /// The decoded path, where the route's path has fields.
    pub(crate) path: Box<[String]>,
}

/// Why it belongs nowhere.
pub(crate) struct NoMatch {
    pub(crate) refusal: Refusal,
    /// What the path takes, for `Allow`.
    pub(crate) allow: Option<String>,
}

impl Router {
    pub(crate) fn new(entries: Vec<Entry>) -> Self {
        let mut router = Self::default();
        for entry in entries.into_iter().map(Arc::new) {
            let expose = &entry.route.expose;
            if expose.segments.iter().all(|segment| matches!(segment, Segment::Literal(_))) {
                router.exact.entry(expose.path()).or_default().push(entry);
            } else {
                router.patterns.push(entry);
            }
        }
        router.patterns.sort_by_key(|entry| std::cmp::Reverse(entry.route.expose.literals()));
        router
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Arc<Entry>> {
        self.exact.values().flatten().chain(&self.patterns)
    }

    /// The route of a request. HEAD goes where GET goes.
    pub(crate) fn find(&self, method: &Method, uri: &Uri) -> Result<Match<'_>, NoMatch> {
        let path = uri.path();
        if let Some(entries) = self.exact.get(path) {
            return pick(entries.iter(), method).map(|entry| Match { entry, path: Box::default() });
        }
        let segments = decode_segments(path).map_err(|error| {
            let code = if error.is_encoding() { Code::BadRequest } else { Code::NotFound };
            NoMatch { refusal: Refusal::new(code, error.to_string()), allow: None }
        })?;
        // A path may spell a plain letter as %61: it is the same path.
        let decoded = segments.iter().fold(String::new(), |path, segment| path + "/" + segment);
        if let Some(entries) = self.exact.get(&decoded) {
            return pick(entries.iter(), method).map(|entry| Match { entry, path: Box::default() });
        }
        let matching = self.patterns.iter().filter(|entry| entry.route.expose.matches(&segments));
        let entry = pick(matching, method)?;
        Ok(Match { entry, path: segments.into_iter().map(Cow::into_owned).collect() })
    }
}

fn pick<'a>(entries: impl Iterator<Item = &'a Arc<Entry>>, method: &Method) -> Result<&'a Arc<Entry>, NoMatch> {
    let wanted = if method == Method::HEAD { &Method::GET } else { method };
    let mut allow = Vec::new();
    for entry in entries {
        let takes = &entry.route.expose.method;
        if takes == wanted {
            return Ok(entry);
        }
        allow.push(if takes == Method::GET { "GET, HEAD" } else { takes.as_str() });
    }
    if allow.is_empty() {
        return Err(NoMatch { refusal: Refusal::new(Code::NotFound, "there is no such route"), allow: None });
    }
    let allow = allow.join(", ");
    Err(NoMatch { refusal: Refusal::new(Code::MethodNotAllowed, format!("this route takes {allow}")), allow: Some(allow) })
}
