//! The rows: a record, and beside it the answer of one that is done.

use rusqlite::{Connection, Row, named_params};

use super::change;
use crate::clock::{Timestamp, micros};
use crate::store::sqlite::upkeep::SWEPT;
use crate::store::sqlite::{Db, answers, to_column, unreadable};
use crate::store::write::record::{self, Record};
use crate::store::write::{Intention, Unresolved};
use crate::store::{StoreError, StoredAnswer};

const LOAD: &str = "SELECT record, status, outcome, headers, body, stored, age, fresh_until, revalidate_until, error_until
    FROM write LEFT JOIN write_answer USING (id) WHERE intention = ?1";

const SAVE: &str = "INSERT INTO write (intention, record, expires) VALUES (?1, ?2, ?3)
    ON CONFLICT (intention) DO UPDATE SET record = excluded.record, expires = excluded.expires
    RETURNING id";

const SAVE_ANSWER: &str = "INSERT OR REPLACE INTO write_answer
    (id, status, outcome, headers, body, stored, age, fresh_until, revalidate_until, error_until)
    VALUES (:id, :status, :outcome, :headers, :body, :stored, :age, :fresh_until, :revalidate_until, :error_until)";

// As the index has it.
const OPEN: &str = "SELECT intention FROM write WHERE state IN ('claimed', 'sending', 'unknown')";

const UNRESOLVED: &str = "SELECT intention, record FROM write
    WHERE state IN ('claimed', 'sending', 'unknown') AND state <> 'claimed' ORDER BY since, intention LIMIT ?1";

const SWEEP: &str = "DELETE FROM write WHERE id IN (SELECT id FROM write WHERE expires <= ?1 LIMIT ?2)";

pub(super) fn load(db: &Db<'_>, intention: Intention) -> Result<Option<Record>, StoreError> {
    let mut statement = db.conn.prepare_cached(LOAD)?;
    let mut rows = statement.query([intention.0.to_be_bytes()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut record = read(row)?;
    if row.get::<_, Option<u16>>("status")?.is_some() {
        record.answer = Some(answers::read(row)?);
    }
    Ok(Some(record))
}

pub(super) fn save(db: &Db<'_>, intention: Intention, record: &Record) -> Result<(), StoreError> {
    let text = serde_json::to_string(record).map_err(|_| unreadable())?;
    let columns = (intention.0.to_be_bytes(), text, record.expires().map(|expires| to_column(expires.0)));
    let id: i64 = db.conn.prepare_cached(SAVE)?.query_row(columns, |row| row.get(0))?;
    match &record.answer {
        Some(answer) => save_answer(db, id, answer),
        None => {
            db.conn.prepare_cached("DELETE FROM write_answer WHERE id = ?1")?.execute([id])?;
            Ok(())
        }
    }
}

fn save_answer(db: &Db<'_>, id: i64, answer: &StoredAnswer) -> Result<(), StoreError> {
    let headers = answers::encode(&answer.headers);
    let columns = named_params! {
        ":id": id,
        ":status": answer.status,
        ":outcome": answer.outcome,
        ":headers": headers.as_ref(),
        ":body": answer.body.as_ref(),
        ":stored": to_column(answer.stored.0),
        ":age": to_column(micros(answer.age)),
        ":fresh_until": to_column(answer.fresh_until.0),
        ":revalidate_until": to_column(answer.revalidate_until.0),
        ":error_until": to_column(answer.error_until.0),
    };
    db.conn.prepare_cached(SAVE_ANSWER)?.execute(columns)?;
    Ok(())
}

pub(super) fn remove(db: &Db<'_>, intention: Intention) -> Result<(), StoreError> {
    db.conn.prepare_cached("DELETE FROM write WHERE intention = ?1")?.execute([intention.0.to_be_bytes()])?;
    Ok(())
}

pub(super) fn unresolved(db: &Db<'_>, most: usize) -> Result<Vec<Unresolved>, StoreError> {
    let mut statement = db.conn.prepare_cached(UNRESOLVED)?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let lines = statement.query_and_then([most], |row| Ok((intention(row)?, read(row)?)))?;
    let lines = lines.collect::<Result<Vec<_>, StoreError>>()?;
    Ok(lines.into_iter().filter_map(|(intention, record)| record::unresolved(intention, &record, db.now)).collect())
}

/// Whoever owned what is claimed or sending has died with its process. For when the file has just been claimed, before anything
/// else is.
pub(in crate::store::sqlite) fn orphan(conn: &Connection, now: Timestamp) -> Result<(), StoreError> {
    let transaction = conn.unchecked_transaction()?;
    let db = Db { conn, now };
    let open = conn.prepare(OPEN)?.query_and_then([], intention)?.collect::<Result<Vec<_>, StoreError>>()?;
    open.into_iter().try_for_each(|intention| change(&db, intention, record::orphan))?;
    Ok(transaction.commit()?)
}

/// What may have been sent has no end to be swept by.
pub(in crate::store::sqlite) fn sweep(conn: &Connection, now: Timestamp) -> Result<usize, StoreError> {
    Ok(conn.prepare_cached(SWEEP)?.execute((to_column(now.0), SWEPT))?)
}

fn read(row: &Row<'_>) -> Result<Record, StoreError> {
    serde_json::from_str(row.get_ref("record")?.as_str().map_err(|_| unreadable())?).map_err(|_| unreadable())
}

fn intention(row: &Row<'_>) -> Result<Intention, StoreError> {
    Ok(Intention(u128::from_be_bytes(row.get("intention")?)))
}
