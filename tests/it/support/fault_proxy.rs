//! What may happen between a gateway and Redis, on a switch: silence, delay, refusals, cuts, and replies that get lost.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::port::{HeldPort, stop_listening};
use super::soon;

mod lose;
mod pump;

use lose::Dice;
pub use lose::Lose;

/// A proxy that understands RESP. Dropping it ends it and its connections.
///
/// A fault is on when the method that switches it on returns, and holds until [`pass`](Self::pass) or another takes its place.
#[derive(Debug)]
pub struct FaultProxy {
    addr: SocketAddr,
    shared: Arc<Shared>,
    serving: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    redis: SocketAddr,
    link: watch::Sender<Link>,
    listening: watch::Sender<bool>,
    /// Of commands, of replies.
    delays: Mutex<[Duration; 2]>,
    dice: Mutex<Dice>,
    /// The connections since the last cut.
    tasks: Mutex<(CancellationToken, TaskTracker)>,
    counts: watch::Sender<Counts>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Link {
    Pass,
    Hang,
    BlackHole,
    Refuse,
}

/// What has come by so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Accepted, black holes included.
    pub connections: usize,
    /// By name, in capitals, when they reach the proxy, whatever becomes of them.
    pub commands: BTreeMap<String, usize>,
    /// Replies that Redis gave and nobody got, by the name of the command.
    pub lost: BTreeMap<String, usize>,
}

impl FaultProxy {
    pub async fn before(redis: SocketAddr) -> Self {
        Self::seeded(redis, 1).await
    }

    /// With a seed for what is left to chance.
    pub async fn seeded(redis: SocketAddr, seed: u64) -> Self {
        let port = HeldPort::free();
        let addr = port.addr();
        let shared = Arc::new(Shared {
            redis,
            link: watch::Sender::new(Link::Pass),
            listening: watch::Sender::new(false),
            delays: Mutex::default(),
            dice: Mutex::new(Dice::new(seed)),
            tasks: Mutex::default(),
            counts: watch::Sender::default(),
        });
        let serving = tokio::spawn(serve(port, shared.clone()));
        let proxy = Self { addr, shared, serving };
        proxy.pass().await;
        proxy
    }

    pub fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// `redis://127.0.0.1:PORT`
    pub fn url(&self) -> String {
        format!("redis://{}", self.addr)
    }

    // === faults ===

    /// No fault. What hung goes on; a connection that fell into the black hole stays there.
    pub async fn pass(&self) {
        self.shared.dice.lock().unwrap().lose(None);
        self.delay(Duration::ZERO, Duration::ZERO);
        self.link(Link::Pass).await;
    }

    /// Nothing goes through in either direction, on old connections and new ones, and none ends. It waits, and goes on with
    /// [`pass`](Self::pass), so that commands may be carried out long after their asker gave up; a [`cut`](Self::cut) loses it.
    pub async fn hang(&self) {
        self.link(Link::Hang).await;
    }

    /// Commands and replies take so much longer, without getting fewer.
    pub fn delay(&self, commands: Duration, replies: Duration) {
        *self.shared.delays.lock().unwrap() = [commands, replies];
    }

    /// New connections are accepted and what comes on them is swallowed; old ones go on.
    pub async fn black_hole(&self) {
        self.link(Link::BlackHole).await;
    }

    /// New connections are refused; old ones go on.
    pub async fn refuse(&self) {
        self.link(Link::Refuse).await;
    }

    /// Closes all connections, and what was on its way is lost. New ones are welcome.
    pub async fn cut(&self) {
        let (token, tasks) = std::mem::take(&mut *self.shared.tasks.lock().unwrap());
        token.cancel();
        tasks.close();
        soon("the end of all connections", tasks.wait()).await;
    }

    /// Refused and cut, as when the machine is gone.
    pub async fn down(&self) {
        self.refuse().await;
        self.cut().await;
    }

    /// Commands are carried out and their replies get lost, see [`Lose`].
    pub fn lose(&self, lose: Lose) {
        self.shared.dice.lock().unwrap().lose(Some(lose));
    }

    async fn link(&self, link: Link) {
        self.shared.link.send_replace(link);
        let mut listening = self.shared.listening.subscribe();
        let switched = listening.wait_for(|listening| *listening == (link != Link::Refuse));
        soon("the proxy's listener", switched).await.unwrap();
    }

    // === counts ===

    pub fn counts(&self) -> Counts {
        self.shared.counts.borrow().clone()
    }

    /// Connections accepted so far.
    pub fn connections(&self) -> usize {
        self.counts().connections
    }

    /// Connections at present.
    pub fn open(&self) -> usize {
        self.shared.tasks.lock().unwrap().1.len()
    }

    /// Commands of that name that came so far.
    pub fn commands(&self, name: &str) -> usize {
        self.counts().commands.get(name).copied().unwrap_or(0)
    }

    /// Replies lost so far.
    pub fn lost(&self) -> usize {
        self.counts().lost()
    }

    /// Waits until the counts are as wanted.
    pub async fn wait_for(&self, what: &str, wanted: impl Fn(&Counts) -> bool) {
        let mut counts = self.shared.counts.subscribe();
        let there = tokio::time::timeout(super::HANG, counts.wait_for(wanted)).await.is_ok();
        assert!(there, "no {what} in {:?}", self.counts());
    }

    pub async fn wait_for_commands(&self, name: &str, commands: usize) {
        let came = |counts: &Counts| counts.commands.get(name).is_some_and(|came| *came >= commands);
        self.wait_for(&format!("{commands} {name}"), came).await;
    }

    pub async fn wait_for_lost(&self, replies: usize) {
        self.wait_for(&format!("{replies} lost"), |counts| counts.lost() >= replies).await;
    }
}

impl Counts {
    /// Replies lost, whatever the command.
    pub fn lost(&self) -> usize {
        self.lost.values().sum()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.serving.abort();
        self.shared.tasks.lock().unwrap().0.cancel();
    }
}

async fn serve(mut port: HeldPort, shared: Arc<Shared>) {
    let mut link = shared.link.subscribe();
    while link.wait_for(|link| *link != Link::Refuse).await.is_ok() {
        let listener = port.listen();
        shared.listening.send_replace(true);
        loop {
            tokio::select! {
                _ = link.wait_for(|link| *link == Link::Refuse) => break,
                Ok((client, _)) = listener.accept() => shared.welcome(client),
            }
        }
        stop_listening(listener);
        shared.listening.send_replace(false);
    }
}

impl Shared {
    fn welcome(self: &Arc<Self>, client: TcpStream) {
        self.counts.send_modify(|counts| counts.connections += 1);
        let black_hole = *self.link.borrow() == Link::BlackHole;
        let shared = self.clone();
        let tasks = self.tasks.lock().unwrap();
        tasks.1.spawn(tasks.0.clone().run_until_cancelled_owned(async move {
            let ended = if black_hole { shared.swallow(client).await } else { shared.relay(client).await };
            if let Err(error) = ended {
                eprintln!("fault proxy: a connection ended: {error}");
            }
        }));
    }
}
