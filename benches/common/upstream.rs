//! Bare hyper with a fixed body, which counts its calls: the upstream.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use anyhow::{Context, Result};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http_body_util::Full;
use hyper::Response;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

const BODY: usize = 1024;

/// A running upstream. It runs to the end of the process.
#[derive(Clone)]
pub struct Upstream {
    pub address: SocketAddr,
    /// How often it has been called.
    pub calls: Arc<AtomicU64>,
}

pub fn start() -> Result<Upstream> {
    let calls = Arc::new(AtomicU64::new(0));
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let counter = Arc::clone(&calls);
    thread::spawn(move || serve(listener, &counter));
    Ok(Upstream { address, calls })
}

/// Answers until the process ends.
#[tokio::main(flavor = "multi_thread")]
pub async fn serve(listener: std::net::TcpListener, calls: &Arc<AtomicU64>) -> Result<()> {
    let body = Bytes::from(answer());
    listener.set_nonblocking(true)?;
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await.context("accept")?;
        stream.set_nodelay(true)?;
        let (body, calls) = (body.clone(), Arc::clone(calls));
        let service = service_fn(move |_| {
            calls.fetch_add(1, Ordering::Relaxed);
            let mut response = Response::new(Full::new(body.clone()));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            async { Ok::<_, Infallible>(response) }
        });
        tokio::spawn(http1::Builder::new().serve_connection(TokioIo::new(stream), service));
    }
}

/// A certain answer in OpenCage's shape, filled up to [`BODY`] bytes.
fn answer() -> String {
    let around = |filling: &str| {
        format!(
            r#"{{"documentation":"https://opencagedata.com/api","licenses":[],"rate":{{"limit":2500,"remaining":2400,"reset":1767225600}},"results":[{{"annotations":{{"note":"{filling}"}},"components":{{"_category":"building","_type":"building","city":"Bengaluru","country":"India","country_code":"in","road":"Residency Road"}},"confidence":9,"formatted":"Residency Road, Bengaluru, India","geometry":{{"lat":12.96943,"lng":77.60587}}}}],"status":{{"code":200,"message":"OK"}},"total_results":1}}"#
        )
    };
    let rest = BODY.saturating_sub(around("").len());
    around(&"x".repeat(rest))
}
