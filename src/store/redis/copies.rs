//! Copies of the store. What must not be forgotten by a failover waits until one of them has it.
//!
//! That is *sending*, the word before the first byte of a paid write. `WAIT` keeps its connection waiting, so this has a link of
//! its own, opened when it is first needed. Without a copy nothing waits. How many there are is asked at each beat: a copy that has
//! gone is waited for in vain until the store has noticed, and meanwhile nothing is sent.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tokio_util::task::TaskTracker;

use super::super::StoreError;
use super::fault::away;
use super::link::Link;
use super::link::call::Call;
use super::reply::Parts;
use super::script::COPIES;

/// What an instance knows of them.
#[derive(Default)]
pub(super) struct Copies {
    known: Mutex<Known>,
    link: OnceLock<Arc<Link>>,
    /// The connection of the shared link beside which this one's was made.
    beside: Mutex<u64>,
}

/// What was heard last, and over which connection: the store at the end of another may be another.
#[derive(Clone, Copy, Default)]
struct Known {
    connection: u64,
    /// Nothing, if the store does not tell.
    online: Option<u64>,
}

impl Copies {
    /// Asks how many there are.
    pub async fn look(&self, link: &Link) -> Result<Option<u64>, StoreError> {
        let connection = *link.connections().borrow();
        let read = |parts: &mut Parts| match parts.bytes()?.as_ref() {
            b"online" => parts.number().map(Some),
            b"untold" => Some(None),
            _ => None,
        };
        let online = link.run(Call::new(&COPIES), read).await?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = Known { connection, online };
        if let Some(link) = self.link.get() {
            self.keep_beside(connection, link);
        }
        Ok(online)
    }

    /// Are there any, as far as is known? A store that does not tell is taken for one without: it is reported.
    pub async fn exist(&self, link: &Link) -> Result<bool, StoreError> {
        let known = self.known();
        let online = if known.connection == *link.connections().borrow() { known.online } else { self.look(link).await? };
        Ok(online.is_some_and(|online| online > 0))
    }

    /// For those who operate the gateway.
    pub fn warning(&self) -> Option<String> {
        let known = self.known();
        (known.connection > 0 && known.online.is_none()).then(|| {
            "the store does not tell whether it has copies (INFO): paid writes wait for none, and after a failover one may be sent \
             twice"
                .to_owned()
        })
    }

    fn known(&self) -> Known {
        *self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The link that may be kept waiting. Its connection was made after the shared one's: never to a store that the latter has left.
    pub async fn link(&self, shared: &Link, tasks: &TaskTracker) -> Result<&Link, StoreError> {
        if !shared.is_up() {
            return Err(away());
        }
        let link = self.link.get_or_init(|| {
            let link = shared.another();
            tasks.spawn(Arc::clone(&link).supervise(None));
            link
        });
        self.keep_beside(*shared.connections().borrow(), link);
        link.up().await?;
        Ok(link)
    }

    fn keep_beside(&self, connection: u64, link: &Link) {
        let mut beside = self.beside.lock().unwrap_or_else(PoisonError::into_inner);
        if *beside != connection {
            link.renew();
            *beside = connection;
        }
    }
}
