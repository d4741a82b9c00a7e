//! The file: who may open it, how, and in which schema.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::super::StoreError;

/// Version of the schema.
pub(super) const SCHEMA: i64 = 3;
/// The schema, as it grew. A file is of version n when the first n have been done; a change is a new one at the end.
const STEPS: [&str; 3] = [include_str!("schema/1.sql"), include_str!("schema/2.sql"), include_str!("schema/3.sql")];
/// Marks the file as ours: "toll".
const APPLICATION: i64 = 0x746f_6c6c;
/// Statements a connection keeps prepared: more than there are.
const STATEMENTS: usize = 64;

/// The right to the file, for as long as this lives. The kernel ends it with the process, however that ends.
#[derive(Debug)]
pub(super) struct Claim(#[expect(dead_code, reason = "held, not read: closing it gives the claim up")] File);

/// Claims the file at `path`, alone among all processes and all stores of this one.
pub(super) fn claim(path: &Path) -> Result<Claim, StoreError> {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    let failed = |error: std::io::Error| StoreError::Failed(format!("cannot open {}: {error}", Path::new(&name).display()));
    let lock = OpenOptions::new().create(true).write(true).truncate(false).open(&name).map_err(failed)?;
    match lock.try_lock() {
        Ok(()) => Ok(Claim(lock)),
        Err(TryLockError::WouldBlock) => Err(StoreError::Held(format!(
            "{} is in use by another tollgate: stop that one first, or give each its own file",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(failed(error)),
    }
}

/// One name for the file, whichever way it was written: two names would be two claims.
pub(super) fn resolve(path: &Path) -> PathBuf {
    let in_its_directory = || {
        let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Some(directory.canonicalize().ok()?.join(path.file_name()?))
    };
    path.canonicalize().ok().or_else(in_its_directory).unwrap_or_else(|| path.to_owned())
}

/// Opens the file for writing, creating or migrating it.
pub(super) fn open_writer(path: &Path, timeout: Duration) -> Result<Connection, StoreError> {
    let named = |error: StoreError| named(path, &error);
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut conn = open(path, flags, timeout).map_err(named)?;
    prepare(&conn).and_then(|()| migrate(&mut conn)).map_err(named)?;
    Ok(conn)
}

/// Opens a connection that cannot write.
pub(super) fn open_reader(path: &Path, timeout: Duration) -> Result<Connection, StoreError> {
    open(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX, timeout)
}

fn open(path: &Path, flags: OpenFlags, timeout: Duration) -> Result<Connection, StoreError> {
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(timeout)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS);
    conn.pragma_update(None, "cache_size", -16_384)?;
    Ok(conn)
}

/// Durable before answered; checkpoints are the writer's own business.
fn prepare(conn: &Connection) -> Result<(), StoreError> {
    conn.pragma_update(None, "page_size", 8192)?;
    let mode: String = conn.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))?;
    if mode != "wal" {
        return Err(StoreError::Failed("its file system cannot hold a SQLite write-ahead log".to_owned()));
    }
    conn.pragma_update(None, "synchronous", "FULL")?;
    conn.pragma_update(None, "wal_autocheckpoint", 0)?;
    conn.pragma_update(None, "foreign_keys", true)?;
    conn.pragma_update(None, "trusted_schema", false)?;
    Ok(())
}

/// Brings the file to the present schema: a new one from nothing, an older one from its own.
fn migrate(conn: &mut Connection) -> Result<(), StoreError> {
    let number = |pragma| conn.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let objects: i64 = conn.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    match (application, version) {
        (0, 0) if objects == 0 => take_steps(conn, 0),
        (APPLICATION, SCHEMA) => Ok(()),
        (APPLICATION, older @ 1..SCHEMA) => take_steps(conn, older),
        (APPLICATION, newer) if newer > SCHEMA => Err(StoreError::Failed(format!(
            "it was written by a newer tollgate (schema {newer}, this one knows {SCHEMA}): run that version, or another file"
        ))),
        _ => Err(StoreError::Failed("it is a SQLite file, but not a tollgate's: name another".to_owned())),
    }
}

/// All that come after `version`, or none.
fn take_steps(conn: &mut Connection, version: i64) -> Result<(), StoreError> {
    let transaction = conn.transaction()?;
    for step in STEPS.iter().skip(usize::try_from(version).unwrap_or(0)) {
        transaction.execute_batch(step)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION)?;
    transaction.pragma_update(None, "user_version", SCHEMA)?;
    Ok(transaction.commit()?)
}

/// A failure that says which file it is about.
pub(super) fn named(path: &Path, error: &StoreError) -> StoreError {
    StoreError::Failed(format!("cannot use {}: {}", path.display(), bare(error)))
}

/// The text without the words every failure begins with.
fn bare(error: &StoreError) -> String {
    match error {
        StoreError::Failed(text) | StoreError::Held(text) => text.clone(),
        StoreError::Timeout => error.to_string(),
    }
}
