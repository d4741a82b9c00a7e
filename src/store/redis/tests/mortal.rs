//! Instances that can freeze, and die without a word.

use std::sync::mpsc::{Sender, channel};

use tokio::runtime::{Builder, Runtime};

use super::*;

/// An instance whose tasks have a runtime, of one thread, to themselves.
pub struct Mortal {
    pub store: Arc<RedisStore>,
    runtime: Option<Runtime>,
}

impl Mortal {
    pub fn start(time: Time, options: Options, clock: &Clock) -> Self {
        let clock = clock.clone();
        let starting = std::thread::spawn(move || {
            let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
            let store = runtime.block_on(async {
                let (store, _) = RedisStore::open_on(time, options, clock).unwrap();
                assert!(store.connected(TIMEOUT).await, "{:?}", store.health());
                store
            });
            Self { store, runtime: Some(runtime) }
        });
        starting.join().unwrap()
    }

    /// Does something in its runtime, whatever runtime waits for it.
    pub fn run<T: Send + 'static>(&self, doing: impl Future<Output = T> + Send + 'static) -> T {
        let (done, result) = channel();
        self.runtime.as_ref().expect("it lives").spawn(async move { done.send(doing.await) });
        result.recv().unwrap()
    }

    /// Stops everything it does, until what is returned is dropped.
    pub fn freeze(&self) -> Sender<()> {
        let (thaw, thawed) = channel::<()>();
        let (frozen, is_frozen) = channel();
        self.runtime.as_ref().expect("it lives").spawn(async move {
            frozen.send(()).unwrap();
            let _ = thawed.recv();
        });
        is_frozen.recv().unwrap();
        thaw
    }
}

impl Drop for Mortal {
    /// Its tasks end where they are: nobody says goodbye.
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            let ending = std::thread::spawn(move || runtime.shutdown_timeout(TIMEOUT));
            ending.join().unwrap();
        }
    }
}
