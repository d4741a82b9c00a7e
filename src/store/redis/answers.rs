//! Answers: a hash each, what scripts judge by in fields of its own, the rest in one.

use std::time::Duration;

use bytes::Bytes;

use super::super::{Digest, StoreError, StoredAnswer};
use super::link::call::Call;
use super::reply::Parts;
use super::script::{ANSWER, FORGET, KEEP, PURGED};
use super::{RedisStore, frame};
use crate::clock::{Timestamp, micros};

/// The form of `meta`. What has another is as good as not there.
const FORM: &[u8] = b"1";

pub(super) async fn answer(store: &RedisStore, key: &Digest) -> Result<Option<StoredAnswer>, StoreError> {
    let call = Call::new(&ANSWER).key(store.keys().answer(key));
    let (now, kept) = store.link.run(call, |parts| Some((parts.time()?, Kept::next(parts)?))).await?;
    Ok(kept.read().filter(|kept| kept.expires() > now))
}

/// An answer as it comes in a reply; both parts are empty if there is none.
pub(super) struct Kept {
    meta: Bytes,
    body: Bytes,
}

impl Kept {
    pub(super) fn next(parts: &mut Parts) -> Option<Self> {
        Some(Self { meta: parts.bytes()?, body: parts.bytes()? })
    }

    /// The answer, if there is one that this version can read.
    pub(super) fn read(self) -> Option<StoredAnswer> {
        decode(self.meta, self.body)
    }
}

pub(super) async fn keep(store: &RedisStore, key: &Digest, answer: &StoredAnswer) -> Result<(), StoreError> {
    let call = with_answer(Call::new(&KEEP).key(store.keys().answer(key)), answer);
    store.link.run(call, |_| Some(())).await
}

/// The arguments by which a script keeps an answer.
pub(super) fn with_answer(call: Call, answer: &StoredAnswer) -> Call {
    call.number(answer.stored.0)
        .number(answer.fresh_until.0)
        .number(answer.expires().0)
        .arg(encode(answer))
        .arg(answer.body.clone())
}

/// First where it lies, then to everyone: in a cluster these are two places. Whoever asks between them may still find it in
/// another instance's memory, as before.
pub(super) async fn forget(store: &RedisStore, route: &str, key: &Digest) -> Result<(), StoreError> {
    let keys = store.keys();
    let call = Call::new(&FORGET)
        .keys([keys.answer(key), keys.lease(key), keys.landed(key), keys.purged(key)])
        .arg(keys.landings())
        .bytes(key);
    store.link.run(call, |_| Some(())).await?;
    let call = Call::new(&PURGED)
        .keys([keys.seq(), keys.log()])
        .arg(keys.changes())
        .bytes(route.as_bytes())
        .bytes(key)
        .arg(store.instance.clone());
    store.link.run(call, |_| Some(())).await
}

fn encode(answer: &StoredAnswer) -> Bytes {
    let StoredAnswer { status, outcome, headers, body: _, stored, age, fresh_until, revalidate_until, error_until } = answer;
    let numbers = [u64::from(*status), micros(*age), stored.0, fresh_until.0, revalidate_until.0, error_until.0];
    let numbers = numbers.map(|number| number.to_string());
    let headers = headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_ref()]);
    frame::pack([FORM, outcome.as_bytes()].into_iter().chain(numbers.iter().map(String::as_bytes)).chain(headers))
}

fn decode(meta: Bytes, body: Bytes) -> Option<StoredAnswer> {
    let mut parts = frame::unpack(meta)?;
    if parts.next()? != FORM {
        return None;
    }
    let outcome = frame::text(parts.next()?)?;
    let mut number = || frame::number(&parts.next()?);
    let (status, age) = (u16::try_from(number()?).ok()?, Duration::from_micros(number()?));
    let [stored, fresh_until, revalidate_until, error_until] =
        [Timestamp(number()?), Timestamp(number()?), Timestamp(number()?), Timestamp(number()?)];
    let mut headers = Vec::new();
    while let Some(name) = parts.next() {
        headers.push((frame::text(name)?, parts.next()?));
    }
    Some(StoredAnswer { status, outcome, headers, body, stored, age, fresh_until, revalidate_until, error_until })
}

#[cfg(test)]
mod tests {
    use super::super::super::conformance::answers::answer;
    use super::*;

    #[test]
    fn an_answer_reads_back_and_another_form_does_not() {
        let kept = answer(3, b"body");
        assert_eq!(decode(encode(&kept), kept.body.clone()), Some(kept.clone()));
        let mut parts: Vec<Bytes> = frame::unpack(encode(&kept)).unwrap().collect();
        parts.pop();
        assert_eq!(decode(frame::pack(parts.iter().map(Bytes::as_ref)), Bytes::new()), None, "a header without a value");
        parts[0] = Bytes::from_static(b"2");
        assert_eq!(decode(frame::pack(parts.iter().map(Bytes::as_ref)), Bytes::new()), None);
    }
}
