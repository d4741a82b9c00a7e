//! Connections.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::front::{Front, Gone};

/// Accepts connections until it is told to stop; then drops them all.
pub async fn accept(listener: TcpListener, front: Arc<Front>, stop: CancellationToken) {
    let connections = TaskTracker::new();
    while let Some(accepted) = stop.run_until_cancelled(listener.accept()).await {
        match accepted {
            Ok((stream, _)) => {
                let (front, stop) = (Arc::clone(&front), stop.clone());
                connections.spawn(async move { stop.run_until_cancelled(serve(stream, front)).await });
            }
            Err(wrong) => pause_after(&wrong).await,
        }
    }
    connections.close();
    connections.wait().await;
}

/// Out of file descriptors: a moment may free some. Anything else was about one connection.
async fn pause_after(wrong: &io::Error) {
    if !matches!(wrong.kind(), io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset) {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
}

async fn serve(stream: TcpStream, front: Arc<Front>) {
    let _ = stream.set_nodelay(true);
    let reset = AtomicBool::new(false);
    let service = service_fn(|request| async {
        let answered = front.handle(request).await;
        reset.store(matches!(answered, Err(Gone::Reset)), Ordering::Relaxed);
        answered
    });
    let mut connection = http1::Builder::new().timer(TokioTimer::new()).serve_connection(TokioIo::new(stream), service);
    let ended = (&mut connection).await;
    if ended.is_err() && reset.load(Ordering::Relaxed) {
        let _ = connection.into_parts().io.into_inner().set_zero_linger();
    }
}
