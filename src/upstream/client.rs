//! The HTTP client of one provider, renewed from time to time: a busy connection would otherwise outlive a provider's move.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::{HeaderMap, HeaderValue, header};

use crate::clock::{Clock, Timestamp};
use crate::provider::Provider;
use crate::provider::credential::{Credential, CredentialPlace};
use crate::provider::template::Rendered;
use crate::question::wire::encode;

/// Idle connections are closed before most providers close theirs.
const IDLE: Duration = Duration::from_secs(20);

/// The client. Cloning shares it.
#[derive(Clone)]
pub(crate) struct Client(Arc<Shared>);

struct Shared {
    provider: Arc<Provider>,
    current: ArcSwap<(reqwest::Client, Timestamp)>,
    clock: Clock,
}

impl Client {
    pub(crate) fn new(provider: &Arc<Provider>, clock: Clock) -> Result<Self, reqwest::Error> {
        let current = ArcSwap::from_pointee((build(provider)?, clock.ticks()));
        Ok(Self(Arc::new(Shared { provider: Arc::clone(provider), current, clock })))
    }

    fn current(&self) -> reqwest::Client {
        let shared = &*self.0;
        let current = shared.current.load();
        let now = shared.clock.ticks();
        if now.since(current.1) < shared.provider.connection_age {
            return current.0.clone();
        }
        // Connections of the old client end with the calls on them.
        match build(&shared.provider) {
            Ok(client) => {
                shared.current.store(Arc::new((client.clone(), now)));
                client
            }
            Err(_) => current.0.clone(),
        }
    }

    /// The request with its credential, without its body; nothing, if it cannot be built.
    pub(crate) fn request(&self, rendered: &Rendered) -> Option<reqwest::RequestBuilder> {
        let provider = &*self.0.provider;
        let mut url = format!("{}{}", provider.base_url, rendered.target);
        let mut headers: HeaderMap = rendered.headers.iter().cloned().collect();
        if let Some(Credential { place, secret }) = &provider.credential {
            match place {
                CredentialPlace::Query(name) => {
                    url.push(if rendered.target.contains('?') { '&' } else { '?' });
                    encode(name, &mut url);
                    url.push('=');
                    encode(secret.expose(), &mut url);
                }
                CredentialPlace::Header { name, prefix } => {
                    headers.insert(name, sensitive(&format!("{prefix}{}", secret.expose()))?);
                }
                CredentialPlace::BasicUser => {
                    headers.insert(header::AUTHORIZATION, basic(secret.expose(), "")?);
                }
                CredentialPlace::Basic { user, .. } => {
                    let user = user.as_ref().or(rendered.user.as_ref()).or(provider.account.as_ref())?;
                    headers.insert(header::AUTHORIZATION, basic(user, secret.expose())?);
                }
            }
        }
        Some(self.current().request(rendered.method.clone(), url).headers(headers))
    }
}

fn basic(user: &str, password: &str) -> Option<HeaderValue> {
    use base64::Engine as _;
    let pair = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    sensitive(&format!("Basic {pair}"))
}

fn sensitive(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}

fn build(provider: &Provider) -> Result<reqwest::Client, reqwest::Error> {
    let agent = provider.user_agent.clone().unwrap_or_else(|| concat!("tollgate/", env!("CARGO_PKG_VERSION")).to_owned());
    let mut builder = reqwest::Client::builder()
        .user_agent(agent)
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .no_proxy()
        .referer(false)
        .tcp_nodelay(true)
        .connect_timeout(provider.connect_timeout)
        .pool_idle_timeout(IDLE);
    if let Some(pem) = &provider.ca {
        builder = builder.tls_certs_only(reqwest::Certificate::from_pem_bundle(pem)?);
    }
    builder.build()
}
