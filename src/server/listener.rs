//! Listening sockets that keep a burst of connects waiting instead of dropping it.

use std::io;
use std::net::SocketAddr;

use tokio::net::{TcpListener, TcpSocket};

/// Connections that may wait to be accepted; the kernel caps it (`net.core.somaxconn`). The usual 128 overflows in a burst, and
/// whoever is dropped then waits a second before it tries again.
const BACKLOG: u32 = 4096;

/// Listens; port 0 takes a free one.
pub(crate) fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // As `TcpListener::bind` does: a restart need not wait for the old connections to be forgotten.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}
