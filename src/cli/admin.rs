//! A client of a running gateway's admin API, at the address and with the token of its config file.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context as _, bail};
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value as Json;

use crate::config::Config;

/// Where the gateway is.
#[derive(clap::Args)]
pub(super) struct Gateway {
    #[command(flatten)]
    file: super::ConfigFile,
    /// The admin API's URL, if it is not the address in the config.
    #[arg(long, value_name = "URL")]
    admin: Option<String>,
}

/// Longer than a gateway may wait for its store.
const TIMEOUT: Duration = Duration::from_secs(10);

const TOKEN: &str = "TOLLGATE_ADMIN_TOKEN";

/// An argument is wrong, or so the gateway says.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct WrongArgument(pub(super) String);

/// The client.
pub(super) struct Client {
    base: String,
    token: String,
    http: reqwest::Client,
}

impl Gateway {
    /// What the arguments and the environment leave open is read from the config.
    pub(super) fn client(&self) -> anyhow::Result<Client> {
        let token = std::env::var(TOKEN).ok().filter(|token| !token.trim().is_empty());
        if let (Some(base), Some(token)) = (&self.admin, &token) {
            return Client::new(base, token);
        }
        // Only `[admin]`: who asks need not have the secrets of the providers.
        let admin = Config::load_admin(&self.file.config)?;
        let configured = admin.token.as_ref().map(|token| token.expose().to_owned());
        let Some(token) = token.or(configured) else {
            bail!("there is no admin token: set admin.token in the config, or {TOKEN}");
        };
        match &self.admin {
            Some(base) => Client::new(base, &token),
            None => Client::new(&reachable(admin.listen)?.to_string(), &token),
        }
    }
}

/// From where a gateway listens to where it is found.
fn reachable(listen: SocketAddr) -> anyhow::Result<SocketAddr> {
    if listen.port() == 0 {
        bail!("admin.listen leaves the port open: say --admin URL, with the address the gateway has printed");
    }
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    Ok(SocketAddr::new(ip, listen.port()))
}

impl Client {
    pub(super) fn new(base: &str, token: &str) -> anyhow::Result<Self> {
        let base = base.trim_end_matches('/');
        let base = if base.contains("://") { base.to_owned() } else { format!("http://{base}") };
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .timeout(TIMEOUT)
            .build()?;
        Ok(Self { base, token: token.to_owned(), http })
    }

    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> anyhow::Result<T> {
        self.call(Method::GET, path, None).await
    }

    /// One call; what it answers, or in words why there is no answer.
    pub(super) async fn call<T: DeserializeOwned>(&self, method: Method, path: &str, body: Option<Json>) -> anyhow::Result<T> {
        let request = self.http.request(method, format!("{}{path}", self.base)).bearer_auth(&self.token);
        let request = match body {
            Some(body) => request.body(body.to_string()),
            None => request,
        };
        let response =
            request.send().await.map_err(reqwest::Error::without_url).with_context(|| {
                format!("no gateway answers at {}; is it running? --admin URL names another address", self.base)
            })?;
        let status = response.status();
        let body = response.bytes().await.context("the gateway's answer broke off")?;
        if status.is_success() {
            return serde_json::from_slice(&body)
                .with_context(|| format!("{} is no tollgate gateway of this version", self.base));
        }
        let problem: Json = serde_json::from_slice(&body).unwrap_or_default();
        let detail = problem.get("detail").and_then(Json::as_str).unwrap_or("it does not say why").to_owned();
        match status {
            StatusCode::UNAUTHORIZED => bail!("the gateway at {} refuses the admin token", self.base),
            StatusCode::BAD_REQUEST => Err(WrongArgument(detail).into()),
            _ => bail!("the gateway at {} refuses ({}): {detail}", self.base, status.as_u16()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_everywhere_is_found_here() {
        let found = |text: &str| reachable(text.parse().unwrap()).map(|addr| addr.to_string()).ok();
        assert_eq!(found("0.0.0.0:9099").as_deref(), Some("127.0.0.1:9099"));
        assert_eq!(found("[::]:9099").as_deref(), Some("[::1]:9099"));
        assert_eq!(found("10.0.0.1:9099").as_deref(), Some("10.0.0.1:9099"));
        assert_eq!(found("127.0.0.1:0"), None);
    }
}
