//! Who waits in this instance for which key's landing elsewhere.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

use crate::store::Digest;
use crate::uniform::Uniform;

type Ears = HashMap<Digest, Vec<Arc<Notify>>, Uniform>;

/// All who wait. Cloning shares them.
#[derive(Clone, Default)]
pub(crate) struct Landings(Arc<Mutex<Ears>>);

impl Landings {
    /// Begins to listen: what lands from now on is heard, also before [`Waiting::told`] is awaited.
    pub(crate) fn wait_for(&self, key: Digest) -> Waiting {
        let ear = Arc::new(Notify::new());
        self.ears().entry(key).or_default().push(Arc::clone(&ear));
        Waiting { landings: self.clone(), key, ear }
    }

    /// A flight for this key has landed somewhere.
    pub(crate) fn tell(&self, key: &Digest) {
        self.ears().get(key).into_iter().flatten().for_each(|ear| ear.notify_one());
    }

    fn ears(&self) -> MutexGuard<'_, Ears> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One who listens; stops on drop.
pub(crate) struct Waiting {
    landings: Landings,
    key: Digest,
    ear: Arc<Notify>,
}

impl Waiting {
    /// Something has landed since the last time.
    pub(crate) async fn told(&self) {
        self.ear.notified().await;
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut ears = self.landings.ears();
        let Some(those) = ears.get_mut(&self.key) else { return };
        those.retain(|ear| !Arc::ptr_eq(ear, &self.ear));
        if those.is_empty() {
            ears.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_landing_before_the_wait_is_heard_by_all_who_listen_and_nobody_else() {
        let landings = Landings::default();
        let (one, two, other) = (landings.wait_for([1; 32]), landings.wait_for([1; 32]), landings.wait_for([2; 32]));
        landings.tell(&[1; 32]);
        one.told().await;
        two.told().await;
        let silence = tokio::time::timeout(std::time::Duration::from_millis(5), other.told()).await;
        assert!(silence.is_err());
        drop((one, two, other));
        assert!(landings.ears().is_empty());
    }
}
