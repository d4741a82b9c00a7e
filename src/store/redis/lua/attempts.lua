-- Rows of the ledger: attempts that are open or unknown. What is settled is in the sums, and of its id a word is kept.

-- What the row says; nothing if it cannot be read.
local function row(key)
    local state, outcome, micros, day, kind, caps, owner =
        unpack(redis.call('HMGET', key, 'state', 'outcome', 'micros', 'day', 'kind', 'caps', 'owner'))
    micros = amount(micros)
    if not (micros and outcome and day and kind and caps and owner) or (state ~= 'open' and state ~= 'unknown') then
        return nil
    end
    return {state = state, outcome = outcome, micros = micros, day = day, kind = kind, caps = caps, owner = owner}
end

-- Counts a row as another state, outcome and amount from now on.
local function resum(found, sums, name, micros)
    take_from(sums, sum_of(found.state, found.outcome, found.kind), found.micros)
    add_to(sums, name, 1, micros)
end
