-- Paid writes, one row an intention. `record` is the JSON of store::write::record::Record, without its answer; what is searched
-- is read from it. At `expires` it has lost its meaning; what may have been sent never does.
CREATE TABLE write (
    id INTEGER PRIMARY KEY,
    intention BLOB NOT NULL UNIQUE CHECK (length(intention) = 16),
    record TEXT NOT NULL,
    expires INTEGER,
    state TEXT NOT NULL AS (record ->> 'state'),
    since INTEGER NOT NULL AS (record ->> 'since'),
    CHECK ((expires IS NULL) = (state IN ('sending', 'unknown')))
) STRICT;
CREATE INDEX write_expires ON write (expires);
CREATE INDEX write_open ON write (since, intention) WHERE state IN ('claimed', 'sending', 'unknown');

-- What was answered to one that is done.
CREATE TABLE write_answer (
    id INTEGER PRIMARY KEY REFERENCES write (id) ON DELETE CASCADE,
    status INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    headers BLOB NOT NULL,
    body BLOB NOT NULL,
    stored INTEGER NOT NULL,
    age INTEGER NOT NULL,
    fresh_until INTEGER NOT NULL,
    revalidate_until INTEGER NOT NULL,
    error_until INTEGER NOT NULL
) STRICT;
