//! The reports: what was spent, from rows and from sums of rows, and what was saved.

use rusqlite::{Connection, Row, named_params};

use super::{amount, column};
use crate::store::StoreError;
use crate::store::money::{Days, Saved, Spent};
use crate::store::sqlite::Db;

// One statement, so that no row is missed or counted twice that is summed meanwhile. Sums of integers are exact or fail.
const SPENT: &str =
    "SELECT day, route, provider, caller, state, outcome, currency, sum(calls) AS calls, sum(micros) AS micros FROM (
        SELECT day, route, provider, shown AS caller, state, outcome, currency, 1 AS calls, micros FROM attempt
            WHERE day BETWEEN ?1 AND ?2
        UNION ALL
        SELECT day, route, provider, caller, state, outcome, currency, calls, micros FROM spent
            WHERE day BETWEEN ?1 AND ?2
    ) GROUP BY day, route, provider, caller, state, outcome, currency
    ORDER BY day, route, provider, caller, state, outcome, currency";

const ADD_SPENT: &str = "INSERT INTO spent (day, route, provider, caller, state, outcome, currency, calls, micros)
    VALUES (:day, :route, :provider, :caller, :state, :outcome, :currency, :calls, :micros)
    ON CONFLICT (day, route, provider, caller, state, outcome, currency)
    DO UPDATE SET calls = calls + excluded.calls, micros = micros + excluded.micros";

const SAVED: &str = "SELECT day, route, caller, cause, currency, requests, micros FROM saved WHERE day BETWEEN ?1 AND ?2
    ORDER BY day, route, caller, cause, currency";

const ADD_SAVED: &str = "INSERT INTO saved (day, route, caller, cause, currency, requests, micros)
    VALUES (:day, :route, :caller, :cause, :currency, :requests, :micros)
    ON CONFLICT (day, route, caller, cause, currency)
    DO UPDATE SET requests = requests + excluded.requests, micros = micros + excluded.micros";

pub(super) fn spent(db: &Db<'_>, days: &Days) -> Result<Vec<Spent>, StoreError> {
    let mut statement = db.conn.prepare_cached(SPENT)?;
    let rows = statement.query_map((&days.from, &days.to), |row| Ok(read_spent(row)))?;
    rows.map(|row| row?).collect()
}

/// A row by the names of its columns.
pub(super) fn read_spent(row: &Row<'_>) -> Result<Spent, StoreError> {
    Ok(Spent {
        day: row.get("day")?,
        route: row.get("route")?,
        provider: row.get("provider")?,
        caller: row.get("caller")?,
        state: row.get("state")?,
        outcome: row.get("outcome")?,
        currency: row.get("currency")?,
        calls: amount(row.get("calls")?)?,
        micros: amount(row.get("micros")?)?,
    })
}

pub(super) fn add_spent(conn: &Connection, spent: &Spent) -> Result<(), StoreError> {
    conn.prepare_cached(ADD_SPENT)?.execute(named_params! {
        ":day": spent.day,
        ":route": spent.route,
        ":provider": spent.provider,
        ":caller": spent.caller,
        ":state": spent.state,
        ":outcome": spent.outcome,
        ":currency": spent.currency,
        ":calls": column(spent.calls)?,
        ":micros": column(spent.micros)?,
    })?;
    Ok(())
}

pub(super) fn saved(db: &Db<'_>, days: &Days) -> Result<Vec<Saved>, StoreError> {
    let mut statement = db.conn.prepare_cached(SAVED)?;
    let rows = statement.query_map((&days.from, &days.to), |row| Ok(read_saved(row)))?;
    rows.map(|row| row?).collect()
}

fn read_saved(row: &Row<'_>) -> Result<Saved, StoreError> {
    Ok(Saved {
        day: row.get("day")?,
        route: row.get("route")?,
        caller: row.get("caller")?,
        cause: row.get("cause")?,
        currency: row.get("currency")?,
        requests: amount(row.get("requests")?)?,
        micros: amount(row.get("micros")?)?,
    })
}

pub(super) fn add_saved(db: &Db<'_>, saved: &Saved) -> Result<(), StoreError> {
    db.conn.prepare_cached(ADD_SAVED)?.execute(named_params! {
        ":day": saved.day,
        ":route": saved.route,
        ":caller": saved.caller,
        ":cause": saved.cause,
        ":currency": saved.currency,
        ":requests": column(saved.requests)?,
        ":micros": column(saved.micros)?,
    })?;
    Ok(())
}
