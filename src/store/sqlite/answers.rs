//! Answers: what is searched in one table, the bodies in another.

use bytes::{BufMut, Bytes, BytesMut};
use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::super::{Digest, StoreError, StoredAnswer};
use super::upkeep::SWEPT;
use super::{Db, from_column, to_column, unreadable};
use crate::clock::{Timestamp, micros};

const GET: &str = "SELECT status, outcome, headers, body, stored, age, fresh_until, revalidate_until, error_until
    FROM answer JOIN body USING (id) WHERE key = ?1 AND expires > ?2";

// A kept answer from the future (the clock was set back) would stay too long.
const KEEP: &str =
    "INSERT INTO answer (key, route, status, outcome, stored, age, fresh_until, revalidate_until, error_until, expires)
    VALUES (:key, :route, :status, :outcome, :stored, :age, :fresh_until, :revalidate_until, :error_until, :expires)
    ON CONFLICT (key) DO UPDATE SET route = excluded.route, status = excluded.status, outcome = excluded.outcome,
        stored = excluded.stored, age = excluded.age, fresh_until = excluded.fresh_until,
        revalidate_until = excluded.revalidate_until, error_until = excluded.error_until, expires = excluded.expires
    WHERE answer.stored <= excluded.stored OR answer.stored > :now
    RETURNING id";

const KEEP_BODY: &str = "INSERT INTO body (id, headers, body) VALUES (?1, ?2, ?3)
    ON CONFLICT (id) DO UPDATE SET headers = excluded.headers, body = excluded.body";

const FORGET: &str = "DELETE FROM answer WHERE key = ?1";

const SWEEP: &str = "DELETE FROM answer WHERE id IN (SELECT id FROM answer WHERE expires <= ?1 LIMIT ?2)";

pub(super) fn get(db: &Db<'_>, key: &Digest) -> Result<Option<StoredAnswer>, StoreError> {
    let mut statement = db.conn.prepare_cached(GET)?;
    let mut rows = statement.query((key, to_column(db.now.0)))?;
    rows.next()?.map(read).transpose()
}

pub(super) fn keep(db: &Db<'_>, route: &str, key: &Digest, answer: &StoredAnswer) -> Result<(), StoreError> {
    let columns = named_params! {
        ":key": key,
        ":route": route,
        ":status": answer.status,
        ":outcome": answer.outcome,
        ":stored": to_column(answer.stored.0),
        ":age": to_column(micros(answer.age)),
        ":fresh_until": to_column(answer.fresh_until.0),
        ":revalidate_until": to_column(answer.revalidate_until.0),
        ":error_until": to_column(answer.error_until.0),
        ":expires": to_column(answer.expires().0),
        ":now": to_column(db.now.0),
    };
    let id: Option<i64> = db.conn.prepare_cached(KEEP)?.query_row(columns, |row| row.get(0)).optional()?;
    if let Some(id) = id {
        let headers = encode(&answer.headers);
        db.conn.prepare_cached(KEEP_BODY)?.execute((id, headers.as_ref(), answer.body.as_ref()))?;
    }
    Ok(())
}

pub(super) fn forget(db: &Db<'_>, key: &Digest) -> Result<(), StoreError> {
    db.conn.prepare_cached(FORGET)?.execute([key])?;
    Ok(())
}

pub(super) fn sweep(conn: &Connection, now: Timestamp) -> Result<usize, StoreError> {
    Ok(conn.prepare_cached(SWEEP)?.execute((to_column(now.0), SWEPT))?)
}

pub(super) fn read(row: &Row<'_>) -> Result<StoredAnswer, StoreError> {
    let time = |column: &str| Ok::<_, StoreError>(Timestamp(from_column(row.get(column)?)));
    let blob = |column: &str| row.get::<_, Vec<u8>>(column).map(Bytes::from);
    Ok(StoredAnswer {
        status: row.get("status")?,
        outcome: row.get("outcome")?,
        headers: decode(blob("headers")?).ok_or_else(unreadable)?,
        body: blob("body")?,
        stored: time("stored")?,
        age: std::time::Duration::from_micros(from_column(row.get("age")?)),
        fresh_until: time("fresh_until")?,
        revalidate_until: time("revalidate_until")?,
        error_until: time("error_until")?,
    })
}

// === Headers as bytes: each name, each value, with its length before it (u32, big-endian) ===

pub(super) fn encode(headers: &[(String, Bytes)]) -> Bytes {
    let mut bytes = BytesMut::new();
    for part in headers.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_ref()]) {
        bytes.put_u32(u32::try_from(part.len()).unwrap_or(u32::MAX));
        bytes.put_slice(part);
    }
    bytes.freeze()
}

fn decode(mut bytes: Bytes) -> Option<Vec<(String, Bytes)>> {
    let mut headers = Vec::new();
    while !bytes.is_empty() {
        let name = String::from_utf8(decode_part(&mut bytes)?.into()).ok()?;
        headers.push((name, decode_part(&mut bytes)?));
    }
    Some(headers)
}

fn decode_part(bytes: &mut Bytes) -> Option<Bytes> {
    let length = usize::try_from(u32::from_be_bytes(*bytes.first_chunk::<4>()?)).ok()?;
    let part = bytes.get(4..length.checked_add(4)?).map(|part| bytes.slice_ref(part))?;
    *bytes = bytes.slice(length.checked_add(4)?..);
    Some(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_cut_anywhere_are_refused_not_misread() {
        let whole = encode(&[("etag".to_owned(), Bytes::from_static(b"\0\xff")), ("via".to_owned(), Bytes::new())]);
        assert_eq!(decode(whole.clone()).map(|headers| headers.len()), Some(2));
        let ends = [0, 4 + 4 + 4 + 2, whole.len()];
        for end in (0..=whole.len()).filter(|end| !ends.contains(end)) {
            assert_eq!(decode(whole.slice(..end)), None, "cut at {end}");
        }
    }
}
