//! The moment the bytes of a write leave: once and in time, or never.
//!
//! A client that hangs up, a deadline, a broken connection say nothing of whether the provider has been asked. So the body of a
//! write asks before it goes: from then on it counts as sent. Whoever calls the attempt off before that moment knows that nothing
//! has left and that nothing will, for no provider acts on a request of which it has not the body. A body that comes too late,
//! because its process stood still and others think that it is gone, does not go.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use crate::stage::idempotency::write::Write;

const WAITING: u8 = 0;
const LEFT: u8 = 1;
const CALLED_OFF: u8 = 2;

/// One attempt's departure.
pub(super) struct Departure {
    state: AtomicU8,
    write: Arc<Write>,
}

impl Departure {
    pub(super) fn new(write: Arc<Write>) -> Arc<Self> {
        Arc::new(Self { state: AtomicU8::new(WAITING), write })
    }

    /// It goes, unless it is too late or called off.
    pub(super) fn leave(&self) -> bool {
        self.write.may_leave() && self.state.compare_exchange(WAITING, LEFT, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Nothing leaves from now on. True if nothing has.
    pub(super) fn call_off(&self) -> bool {
        self.state.compare_exchange(WAITING, CALLED_OFF, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A body that asks before it goes.
pub(super) struct Departing {
    body: Option<Bytes>,
    departure: Arc<Departure>,
}

impl Departing {
    pub(super) fn body(body: Bytes, departure: &Arc<Departure>) -> reqwest::Body {
        reqwest::Body::wrap(Self { body: Some(body), departure: Arc::clone(departure) })
    }
}

/// Why a body does not go.
#[derive(Debug, thiserror::Error)]
#[error("it is too late to send")]
pub(super) struct TooLate;

impl http_body::Body for Departing {
    type Data = Bytes;
    type Error = TooLate;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, TooLate>>> {
        let Some(body) = self.body.take() else { return Poll::Ready(None) };
        Poll::Ready(Some(if self.departure.leave() { Ok(Frame::data(body)) } else { Err(TooLate) }))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.body.as_ref().map_or(0, |body| body.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use http_body::Body as _;

    use super::*;
    use crate::clock::{Clock, Timestamp};

    fn departure(clock: &Clock, until: u64) -> Arc<Departure> {
        Departure::new(Write::leaving_until(Timestamp(until), clock.clone()))
    }

    fn goes(departure: &Arc<Departure>) -> bool {
        let mut body = Departing { body: Some("x".into()), departure: Arc::clone(departure) };
        let polled = Pin::new(&mut body).poll_frame(&mut Context::from_waker(std::task::Waker::noop()));
        matches!(polled, Poll::Ready(Some(Ok(_))))
    }

    #[test]
    fn what_has_left_cannot_be_called_off_and_what_is_called_off_does_not_leave() {
        let clock = Clock::manual(Timestamp(0));
        let left = departure(&clock, 10);
        assert!(goes(&left) && !left.call_off());
        let called_off = departure(&clock, 10);
        assert!(called_off.call_off() && !goes(&called_off));
        let late = departure(&clock, 10);
        clock.advance(Duration::from_micros(10));
        assert!(!goes(&late) && late.call_off(), "it was too late, so nothing has left");
    }

    #[test]
    fn a_body_says_how_long_it_is() {
        let body = Departing { body: Some("four".into()), departure: departure(&Clock::manual(Timestamp(0)), 1) };
        assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(4), false));
    }
}
