//! Callers have deadlines of their own and may leave before ours. One who has waited in vain for about as long as a call may
//! take says as much about the connection as a timeout.

use std::sync::Arc;

use super::super::super::StoreError;
use super::super::fault::Fault;
use super::{Link, Live};
use crate::clock::Timestamp;

/// A caller that waits for a reply.
pub(super) struct Waiting<'a> {
    link: &'a Link,
    live: &'a Arc<Live>,
    since: Timestamp,
    over: bool,
}

impl Link {
    pub(super) fn waiting<'a>(&'a self, live: &'a Arc<Live>) -> Waiting<'a> {
        Waiting { link: self, live, since: self.clock.ticks(), over: false }
    }
}

impl Waiting<'_> {
    /// There is a reply, or a timeout that will be dealt with.
    pub(super) fn over(mut self) {
        self.over = true;
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.over && self.link.clock.ticks().since(self.since) >= self.link.timeout * 9 / 10 {
            self.link.failed(self.live, &Fault::Link(StoreError::Timeout));
        }
    }
}
