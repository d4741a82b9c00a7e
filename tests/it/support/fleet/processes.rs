//! Several gateways that are to act as one, each a process of its own: for what only happens to processes.

use std::net::SocketAddr;

use futures_util::future::join_all;
use tempfile::TempDir;

use super::volley::volley;
use crate::support::gate::Setup;
use crate::support::raw::Response;
use crate::support::serve::{Served, command};
use crate::support::signal::{self, Leash};
use crate::support::upstream::FakeUpstream;

/// Instances by number, from 0. Dropping it kills them, stopped ones too.
pub struct Processes {
    members: Vec<Member>,
    upstream: String,
}

struct Member {
    running: Option<Running>,
    setup: Setup,
    dir: TempDir,
}

struct Running {
    /// Ahead of the process: once that is reaped its id may be another's.
    _leash: Leash,
    served: Served,
}

impl Processes {
    /// So many instances, each as `setup` says of its number.
    pub async fn start(instances: usize, upstream: &FakeUpstream, setup: impl Fn(usize) -> Setup) -> Self {
        let member = |nth| Member { running: None, setup: setup(nth), dir: tempfile::tempdir().unwrap() };
        let mut fleet = Self { members: (0..instances).map(member).collect(), upstream: upstream.url() };
        join_all(fleet.members.iter_mut().map(|member| member.start(&fleet.upstream))).await;
        fleet
    }

    /// The running instance of that number.
    pub fn member(&self, nth: usize) -> &Served {
        &self.members[nth].running.as_ref().unwrap_or_else(|| panic!("instance {nth} was killed")).served
    }

    fn running(&self) -> impl Iterator<Item = &Served> {
        self.members.iter().filter_map(|member| Some(&member.running.as_ref()?.served))
    }

    /// SIGKILL; it is gone when this returns.
    pub fn kill(&mut self, nth: usize) {
        self.members[nth].running = None;
    }

    /// Starts one that was killed, or kills it first: with the same config and directory, on new ports.
    pub async fn restart(&mut self, nth: usize) {
        self.kill(nth);
        self.members[nth].start(&self.upstream).await;
    }

    /// SIGSTOP: it holds what it holds and does nothing. Metrics of the fleet wait for it.
    pub fn stop(&self, nth: usize) {
        signal::stop(self.member(nth).id());
    }

    /// SIGCONT.
    pub fn go_on(&self, nth: usize) {
        self.member(nth).signal("CONT");
    }

    /// Of those that run.
    pub fn addrs(&self) -> Vec<SocketAddr> {
        self.running().map(|served| served.addr).collect()
    }

    /// Asks all that run at once, the nth request of the nth instance, round and round. For some of the instances: [`volley`].
    pub async fn ask(&self, requests: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Vec<Option<Response>> {
        volley(&self.addrs(), requests).await
    }

    /// Money spent so far by those that run, in micro-units. What a killed one had spent is not in it.
    pub async fn spent(&self) -> u64 {
        join_all(self.running().map(Served::spent)).await.into_iter().sum()
    }
}

impl Member {
    async fn start(&mut self, upstream: &str) {
        let served = self.setup.serve_as(self.dir.path(), upstream, command).await;
        self.running = Some(Running { _leash: Leash::of(served.id()), served });
    }
}
