//! Accepting: an error of one connection, or a want of descriptors, never ends the listener.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};

/// How long to leave the listener alone when the system has nothing to accept with.
const BREATH: Duration = Duration::from_millis(100);

/// The next connection.
pub(super) async fn next(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok(accepted) => return accepted,
            Err(error) => pause(&error).await,
        }
    }
}

async fn pause(error: &io::Error) {
    if is_theirs(error) {
        return;
    }
    tracing::warn!(%error, "cannot accept connections");
    tokio::time::sleep(BREATH).await;
}

/// The error belongs to the connection that was to be accepted, not to us.
fn is_theirs(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::ConnectionAborted | ErrorKind::ConnectionReset | ErrorKind::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_want_makes_us_wait() {
        assert!(is_theirs(&io::Error::from(ErrorKind::ConnectionAborted)));
        let too_many_open_files = 24;
        assert!(!is_theirs(&io::Error::from_raw_os_error(too_many_open_files)));
    }
}
