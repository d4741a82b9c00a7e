//! A well-behaved client: keep-alive, no redirects, no proxy, no retries, no decoding.

use bytes::Bytes;
use http::{HeaderMap, Method};

use super::soon;

/// A client of one base address.
#[derive(Clone, Debug)]
pub struct Client {
    base: String,
    inner: reqwest::Client,
    headers: HeaderMap,
}

/// What came back, whole.
#[derive(Clone, Debug)]
pub struct Reply {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Reply {
    /// The first value under that name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a printable header"))
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// The code of a refusal, from wherever the route's shape has it.
    pub fn code(&self) -> String {
        let quoted = |text: &str| Some(text.split_once("details=\"")?.1.split('"').next()?.to_owned());
        let own = || serde_json::from_slice::<serde_json::Value>(&self.body).ok()?["code"].as_str().map(ToOwned::to_owned);
        self.header("proxy-status").and_then(quoted).or_else(own).unwrap_or_default()
    }
}

impl Client {
    /// A client of `http://host:port`.
    pub fn new(base: impl Into<String>) -> Self {
        let inner = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .retry(reqwest::retry::never())
            .no_proxy()
            .no_gzip()
            .build()
            .unwrap();
        Self { base: base.into(), inner, headers: HeaderMap::new() }
    }

    /// The same client with a header on every request.
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.insert(name, value.parse().unwrap());
        self
    }

    /// Likewise, with a value that is no text.
    pub fn with_value(mut self, name: &'static str, value: http::HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The same client with no header of its own.
    pub fn bare(&self) -> Self {
        Self { headers: HeaderMap::new(), ..self.clone() }
    }

    pub async fn get(&self, path: &str) -> Reply {
        self.send(Method::GET, path, Bytes::new()).await
    }

    /// POSTs JSON.
    #[allow(clippy::needless_pass_by_value, reason = "reads better with json!")]
    pub async fn post(&self, path: &str, json: serde_json::Value) -> Reply {
        let client = self.clone().with("content-type", "application/json");
        client.send(Method::POST, path, json.to_string().into()).await
    }

    /// POSTs a form.
    pub async fn form(&self, path: &str, form: &str) -> Reply {
        let client = self.clone().with("content-type", "application/x-www-form-urlencoded");
        client.send(Method::POST, path, form.to_owned().into()).await
    }

    /// Any request; a failure to get a whole answer fails the test.
    pub async fn send(&self, method: Method, path: &str, body: Bytes) -> Reply {
        self.try_send(method, path, body).await.unwrap_or_else(|error| panic!("no answer: {error:?}"))
    }

    /// The same client with connections of its own: those of a gateway that is ending are closed under whoever holds them.
    pub fn fresh(&self) -> Self {
        Self { headers: self.headers.clone(), ..Self::new(self.base.clone()) }
    }

    /// Waits until a path is answered with that status. That a connection ends meanwhile is no failure.
    pub async fn until(&self, path: &str, status: u16) {
        soon(&format!("{status} of {path}"), async {
            while self.try_send(Method::GET, path, Bytes::new()).await.map_or(0, |reply| reply.status) != status {
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
        })
        .await;
    }

    pub async fn try_send(&self, method: Method, path: &str, body: Bytes) -> reqwest::Result<Reply> {
        let request = self.inner.request(method, format!("{}{path}", self.base)).headers(self.headers.clone()).body(body);
        soon("an answer", async {
            let response = request.send().await?;
            let (status, headers) = (response.status().as_u16(), response.headers().clone());
            Ok(Reply { status, headers, body: response.bytes().await? })
        })
        .await
    }
}
