-- Money. Amounts are micro-units of one currency, below 2^53; a column that would be anything else fails its operation.

-- What a cap has used: billed, open and unknown. An id is never used again, so that a late settlement finds its own or none.
CREATE TABLE counter (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL UNIQUE,
    used INTEGER NOT NULL CHECK (used BETWEEN 0 AND 9007199254740991),
    ends INTEGER NOT NULL
) STRICT;
CREATE INDEX counter_ends ON counter (ends);

-- The ledger. A row is here before bytes are sent. `micros` is what it counts as: what was reserved, later what it cost.
-- `counters` is a JSON list of the counters it is in, as often as it is in them. `shown` is the caller as reports name it.
CREATE TABLE attempt (
    number INTEGER PRIMARY KEY,
    id BLOB NOT NULL UNIQUE CHECK (length(id) = 16),
    state TEXT NOT NULL CHECK (state IN ('open', 'billed', 'not_billed', 'unknown')),
    at INTEGER NOT NULL,
    micros INTEGER NOT NULL CHECK (micros BETWEEN 0 AND 9007199254740991),
    counters TEXT NOT NULL,
    day TEXT NOT NULL,
    route TEXT NOT NULL,
    provider TEXT NOT NULL,
    caller BLOB NOT NULL CHECK (length(caller) = 16),
    shown TEXT NOT NULL,
    outcome TEXT NOT NULL,
    currency TEXT NOT NULL
) STRICT;
CREATE INDEX attempt_state ON attempt (state, at);
CREATE INDEX attempt_day ON attempt (day);

-- Ids that were settled before they were reserved.
CREATE TABLE given_up (
    id BLOB PRIMARY KEY CHECK (length(id) = 16),
    at INTEGER NOT NULL
) STRICT;
CREATE INDEX given_up_at ON given_up (at);

-- What has left the ledger, summed.
CREATE TABLE spent (
    day TEXT NOT NULL,
    route TEXT NOT NULL,
    provider TEXT NOT NULL,
    caller TEXT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT NOT NULL,
    currency TEXT NOT NULL,
    calls INTEGER NOT NULL,
    micros INTEGER NOT NULL,
    PRIMARY KEY (day, route, provider, caller, state, outcome, currency)
) STRICT, WITHOUT ROWID;

CREATE TABLE saved (
    day TEXT NOT NULL,
    route TEXT NOT NULL,
    caller TEXT NOT NULL,
    cause TEXT NOT NULL,
    currency TEXT NOT NULL,
    requests INTEGER NOT NULL,
    micros INTEGER NOT NULL,
    PRIMARY KEY (day, route, caller, cause, currency)
) STRICT, WITHOUT ROWID;

-- What has been done once, for as long as that is to be known.
CREATE TABLE mark (
    mark TEXT PRIMARY KEY,
    until INTEGER NOT NULL
) STRICT;
CREATE INDEX mark_until ON mark (until);
