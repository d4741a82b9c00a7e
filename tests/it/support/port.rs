//! A port that stays ours while nobody listens on it: a server can be killed and come back, and no other test gets its port meanwhile.

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;

use tokio::net::{TcpListener, TcpSocket};

/// A bound socket that does not listen. Connects are refused until a server of the test listens beside it.
#[derive(Debug)]
pub struct HeldPort(TcpSocket, SocketAddr);

impl HeldPort {
    /// A free port of 127.0.0.1.
    pub fn free() -> Self {
        Self::hold(SocketAddr::from(([127, 0, 0, 1], 0)))
    }

    fn hold(addr: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        // With it a second socket may be bound to the port as long as none of them listens.
        socket.set_reuseaddr(true).unwrap();
        socket.bind(addr).unwrap_or_else(|error| panic!("{addr}: {error}"));
        let addr = socket.local_addr().unwrap();
        Self(socket, addr)
    }

    pub fn addr(&self) -> SocketAddr {
        self.1
    }

    /// Listens on it in this process. The port stays held when the listener is dropped.
    pub fn listen(&mut self) -> TcpListener {
        let spare = Self::hold(self.1);
        std::mem::replace(self, spare).0.listen(1024).unwrap()
    }
}

/// Stops listening now. Closing is not enough: a process that another thread is just starting has a copy of the socket until it
/// has become the program it is to be.
pub fn stop_listening(listener: TcpListener) {
    let socket = OwnedFd::from(listener.into_std().unwrap());
    TcpStream::from(socket).shutdown(Shutdown::Both).unwrap();
}
