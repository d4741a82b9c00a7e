//! Many askers at once: each has its connection, and one barrier lets them all go.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::future::join_all;
use tokio::sync::Barrier;

use crate::support::gate::KEY;
use crate::support::raw::{Raw, Response};

/// A GET with the caller's key, as it goes over the wire.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: gate\r\nX-Api-Key: {KEY}\r\n\r\n")
}

/// Sends the requests at once, each on a connection of its own, the nth to the nth address, round and round.
///
/// The responses in the order of the requests; none where the connection ended before a whole one.
pub async fn volley(addrs: &[SocketAddr], requests: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Vec<Option<Response>> {
    let requests: Vec<Vec<u8>> = requests.into_iter().map(Into::into).collect();
    let connections = join_all(addrs.iter().copied().cycle().take(requests.len()).map(Raw::connect)).await;
    let barrier = Arc::new(Barrier::new(requests.len()));
    let ask = |(request, mut raw): (Vec<u8>, Raw)| {
        let barrier = barrier.clone();
        tokio::spawn(async move {
            barrier.wait().await;
            raw.send(request).await.try_response("GET").await.ok().flatten()
        })
    };
    let askers: Vec<_> = requests.into_iter().zip(connections).map(ask).collect();
    join_all(askers).await.into_iter().map(Result::unwrap).collect()
}
