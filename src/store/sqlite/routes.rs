//! What is kept of a route: its purge generation and its switch.

use rusqlite::OptionalExtension;

use super::super::{OpId, StoreError, Switch};
use super::{Db, applied, from_column, to_column, unreadable};

const SET_GENERATION: &str = "INSERT INTO generation (route, value) VALUES (?1, ?2)
    ON CONFLICT (route) DO UPDATE SET value = excluded.value";

const SET_SWITCH: &str = "INSERT INTO switch (name, switch) VALUES (?1, ?2)
    ON CONFLICT (name) DO UPDATE SET switch = excluded.switch";

pub(super) fn generation(db: &Db<'_>, route: &str) -> Result<u64, StoreError> {
    let mut statement = db.conn.prepare_cached("SELECT value FROM generation WHERE route = ?1")?;
    let value: Option<i64> = statement.query_row([route], |row| row.get(0)).optional()?;
    Ok(value.map_or(0, from_column))
}

pub(super) fn raise_generation(db: &Db<'_>, op: OpId, route: &str) -> Result<u64, StoreError> {
    applied::once(db, op, || {
        let raised = generation(db, route)?.saturating_add(1);
        db.conn.prepare_cached(SET_GENERATION)?.execute((route, to_column(raised)))?;
        Ok(raised)
    })
}

pub(super) fn switches(db: &Db<'_>) -> Result<Vec<(String, Switch)>, StoreError> {
    let mut statement = db.conn.prepare_cached("SELECT name, switch FROM switch")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get::<_, String>(1)?)))?;
    rows.map(|row| {
        let (name, switch) = row?;
        Ok((name, serde_json::from_str(&switch).map_err(|_| unreadable())?))
    })
    .collect()
}

pub(super) fn set_switch(db: &Db<'_>, name: &str, switch: &Switch) -> Result<(), StoreError> {
    let switch = serde_json::to_string(switch).map_err(|_| unreadable())?;
    db.conn.prepare_cached(SET_SWITCH)?.execute((name, switch))?;
    Ok(())
}
