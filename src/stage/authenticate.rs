//! Who asks: a key, a token, a header set by a trusted proxy, or, where that is allowed, an address. Refuses
//! `unauthenticated`; a caller the route does not list gets `not_found`, as if there were no route.
//!
//! A wrong key is refused and never falls back to the address, and unknown keys make no state. A name of `[callers.keys]` is
//! its key's alone: a token or header that says the same name is somebody else, and on no list.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use sha2::{Digest as _, Sha256};

use super::{Next, Stage, Verdict};
use crate::call::{Ask, Caller, Request};
use crate::config::units::Cidr;
use crate::question::wire::parse_query;
use crate::refusal::{Code, Refusal};
use crate::route::Route;
use crate::uniform::Uniform;

pub(crate) mod config;
pub(crate) mod jwt;

use config::{Config, KeySource};
use jwt::Jwt;

/// Everyone who may call, over all routes.
pub(crate) struct Callers {
    keys: HashMap<[u8; 32], Arc<Caller>, Uniform>,
    names: BTreeSet<String>,
    sources: Vec<KeySource>,
    jwt: Option<Arc<Jwt>>,
    header: Option<HeaderName>,
    by_address: bool,
    trusted: Vec<Cidr>,
}

impl Callers {
    pub(crate) fn new(config: &Config, jwt: Option<Arc<Jwt>>, trusted: Vec<Cidr>) -> Self {
        let mut keys = HashMap::default();
        for (name, digests) in &config.keys {
            let caller = Caller::new("key", name.clone());
            keys.extend(digests.iter().map(|digest| (*digest, Arc::clone(&caller))));
        }
        Self {
            keys,
            names: config.keys.keys().cloned().collect(),
            sources: config.read_key_from.clone(),
            jwt,
            header: config.header.clone(),
            by_address: config.by_address,
            trusted,
        }
    }

    /// Query parameters in which a key may stand: no field of any question.
    pub(crate) fn consumed(&self) -> Vec<String> {
        let names =
            self.sources.iter().filter_map(|source| if let KeySource::Query(name) = source { Some(name.clone()) } else { None });
        names.collect()
    }

    async fn caller(&self, request: &Request) -> Result<Arc<Caller>, Refusal> {
        if let Some(credential) = self.credential(request)? {
            return self.known(&credential).await;
        }
        if let Some(name) = &self.header
            && self.is_trusted(request.peer)
            && let Some(value) = one(&request.head.headers, name)?
        {
            let name = value.to_str().ok().map(str::trim).filter(|name| !name.is_empty());
            return name.map(|name| Caller::new("header", name)).ok_or_else(|| refused("the caller's header is not readable"));
        }
        if self.by_address {
            return Ok(Caller::new("address", network(self.client(request))));
        }
        Err(refused("a caller key is needed"))
    }

    /// The first credential found, in the order of `read_key_from`.
    fn credential<'a>(&self, request: &'a Request) -> Result<Option<Credential<'a>>, Refusal> {
        for source in &self.sources {
            if let Some(credential) = source.read(&request.head)? {
                return Ok(Some(credential));
            }
        }
        Ok(None)
    }

    async fn known(&self, credential: &Credential<'_>) -> Result<Arc<Caller>, Refusal> {
        // Only digests are compared, so the time it takes says nothing about a key.
        let digest: [u8; 32] = Sha256::digest(credential.text.as_bytes()).into();
        if let Some(caller) = self.keys.get(&digest) {
            return Ok(Arc::clone(caller));
        }
        match &self.jwt {
            Some(jwt) if credential.bearer => {
                let subject = Box::pin(jwt.subject(&credential.text))
                    .await
                    .map_err(|reason| refused("the token is not valid").because(reason))?;
                Ok(Caller::new("jwt", subject))
            }
            _ => Err(refused("the caller key is not known")),
        }
    }

    /// Goes by the name of a key it has not shown.
    fn is_impostor(&self, caller: &Caller) -> bool {
        !caller.has_key && self.names.contains(&caller.name)
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(address))
    }

    /// The client's address: behind trusted proxies the right-most hop of `X-Forwarded-For` that is not one of them.
    fn client(&self, request: &Request) -> IpAddr {
        let mut client = request.peer;
        if !self.is_trusted(client) {
            return client;
        }
        // Byte by byte: a line that is no text must not make the line before it the last.
        let lines: Vec<&[u8]> = request.head.headers.get_all("x-forwarded-for").iter().map(HeaderValue::as_bytes).collect();
        for hop in lines.iter().rev().flat_map(|line| line.rsplit(|byte| *byte == b',')) {
            let Some(address) = hop_address(hop) else { return client };
            client = address;
            if !self.is_trusted(client) {
                return client;
            }
        }
        client
    }
}

/// An address, with or without a port, as proxies write it.
fn hop_address(hop: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(hop).ok()?.trim();
    let bare = || text.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>().ok();
    text.parse::<SocketAddr>().map(|socket| socket.ip()).ok().or_else(bare)
}

/// The one line under a name: of two, one is not from whom it says.
fn one<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Refusal> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (Some(_), Some(_)) => Err(refused("the caller is named twice")),
        (line, _) => Ok(line),
    }
}

/// IPv4 by address, IPv6 by /64: one household, one caller.
fn network(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => {
            let network = address.to_bits() & (u128::MAX << 64);
            format!("{}/64", Ipv6Addr::from_bits(network))
        }
    }
}

fn refused(detail: &'static str) -> Refusal {
    Refusal::new(Code::Unauthenticated, detail)
}

/// What a caller showed.
struct Credential<'a> {
    text: Cow<'a, str>,
    bearer: bool,
}

impl KeySource {
    fn read<'a>(&self, head: &'a http::request::Parts) -> Result<Option<Credential<'a>>, Refusal> {
        match self {
            Self::Bearer => Ok(authorization(head, "bearer")?.map(|text| Credential { text: text.into(), bearer: true })),
            Self::Header(name) => {
                let Some(value) = one(&head.headers, name)? else { return Ok(None) };
                let text = value.to_str().map_err(|_| refused("the caller key is not readable"))?;
                Ok(Some(Credential { text: text.trim().into(), bearer: false }))
            }
            Self::Query(name) => Ok(query(head, name)?.map(|text| Credential { text, bearer: false })),
            Self::Basic => {
                let Some(encoded) = authorization(head, "basic")? else { return Ok(None) };
                let decoded = BASE64.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                let decoded = decoded.ok_or_else(|| refused("the Basic credential is not readable"))?;
                // The password; a user name alone, where the client has only one thing to say.
                let (user, password) = decoded.split_once(':').unwrap_or((&decoded, ""));
                let text = if password.is_empty() { user } else { password };
                Ok(Some(Credential { text: text.to_owned().into(), bearer: false }))
            }
        }
    }
}

/// What stands after a scheme, be it nothing: an empty key is a wrong one, not none.
fn authorization<'a>(head: &'a http::request::Parts, scheme: &str) -> Result<Option<&'a str>, Refusal> {
    let Some(value) = one(&head.headers, &header::AUTHORIZATION)? else { return Ok(None) };
    let text = value.to_str().map_err(|_| refused("the caller key is not readable"))?;
    let (word, rest) = text.split_once(' ').unwrap_or((text, ""));
    Ok(word.eq_ignore_ascii_case(scheme).then_some(rest.trim()))
}

fn query<'a>(head: &'a http::request::Parts, name: &str) -> Result<Option<Cow<'a, str>>, Refusal> {
    let text = head.uri.query().unwrap_or_default();
    if text.is_empty() {
        return Ok(None);
    }
    let pairs = parse_query(text).map_err(|error| Refusal::field(Code::InvalidQuestion, "query", error.to_string()))?;
    let mut values = pairs.into_iter().filter(|(known, value)| known == name && !value.is_empty()).map(|(_, value)| value);
    match (values.next(), values.next()) {
        (Some(_), Some(_)) => Err(refused("the caller key is given twice")),
        (value, _) => Ok(value),
    }
}

/// The stage of one route.
#[derive(Clone)]
pub(crate) struct Authenticate {
    callers: Arc<Callers>,
    route: Arc<Route>,
}

impl Authenticate {
    pub(crate) fn new(callers: Arc<Callers>, route: Arc<Route>) -> Self {
        Self { callers, route }
    }

    /// The caller of a request, if this route is for it.
    pub(crate) async fn caller(&self, request: &Request) -> Result<Arc<Caller>, Refusal> {
        let caller = self.callers.caller(request).await?;
        request.journey.set_caller(&caller);
        match &self.route.callers {
            Some(listed) if !listed.contains(&caller.name) || self.callers.is_impostor(&caller) => {
                Err(Refusal::new(Code::NotFound, "there is no such route"))
            }
            _ => Ok(caller),
        }
    }
}

impl Stage for Authenticate {
    type In = Box<Request>;
    type Out = Ask;

    async fn handle(&self, request: Box<Request>, next: &impl Next<Ask>) -> Verdict {
        let caller = self.caller(&request).await?;
        next.run(Ask { request, caller }).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_caller_is_its_64() {
        assert_eq!(network("2001:db8:1:2:3::4".parse().unwrap()), "2001:db8:1:2::/64");
        assert_eq!(network("::ffff:10.0.0.1".parse().unwrap()), "10.0.0.1");
    }
}
