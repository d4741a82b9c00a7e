-- Times are microseconds since the epoch. Whatever belongs to a user is here only as a digest, save the answers themselves.

-- What is searched and swept stands apart from the bodies, so that scans do not read them.
CREATE TABLE answer (
    id INTEGER PRIMARY KEY,
    key BLOB NOT NULL UNIQUE CHECK (length(key) = 32),
    route TEXT NOT NULL,
    status INTEGER NOT NULL,
    outcome TEXT NOT NULL,
    stored INTEGER NOT NULL,
    age INTEGER NOT NULL,
    fresh_until INTEGER NOT NULL,
    revalidate_until INTEGER NOT NULL,
    error_until INTEGER NOT NULL,
    expires INTEGER NOT NULL
) STRICT;
CREATE INDEX answer_expires ON answer (expires);

CREATE TABLE body (
    id INTEGER PRIMARY KEY REFERENCES answer (id) ON DELETE CASCADE,
    headers BLOB NOT NULL,
    body BLOB NOT NULL
) STRICT;

CREATE TABLE generation (
    route TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT;

-- `switch` is the JSON of store::Switch.
CREATE TABLE switch (
    name TEXT PRIMARY KEY,
    switch TEXT NOT NULL
) STRICT;

-- `state` is the JSON of store::lockout::Lockout; at `idle_at` it has lost its meaning.
CREATE TABLE lockout (
    subject BLOB PRIMARY KEY CHECK (length(subject) = 32),
    state TEXT NOT NULL,
    idle_at INTEGER NOT NULL
) STRICT;
CREATE INDEX lockout_idle_at ON lockout (idle_at);

-- Operations done, so that a repeat has no effect. Pruned by `at`.
CREATE TABLE applied (
    op BLOB PRIMARY KEY CHECK (length(op) = 16),
    result INTEGER NOT NULL,
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX applied_at ON applied (at);
