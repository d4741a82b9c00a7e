-- Records of paid writes: a hash for each intention, and an index of those that were sent and are not settled. The rules are those
-- of store::write::record. What does not read as a record is refused, not repaired, and all is read before anything is written.
local LONGEST = 10 * MINUTE
-- As often something is sent without a word of what came of it.
local MOST_SENDS = 32

-- The record; nothing if there is none. Beside it, whether what is there cannot be read.
local function record(key, unsettled, id)
    -- An index of another kind is an error here, and not between two writes.
    redis.call('ZSCORE', unsettled, id)
    local kind = redis.call('TYPE', key).ok
    if kind ~= 'hash' then
        return nil, kind ~= 'none'
    end
    local state, owner, fingerprint, about, gone, ends, since, timeout, taken_over, turn, turn_ends = unpack(redis.call('HMGET',
        key, 'state', 'owner', 'fingerprint', 'about', 'gone', 'until', 'since', 'timeout', 'taken_over', 'turn', 'turn_until'))
    ends, since, timeout, taken_over = amount(ends), amount(since), amount(timeout), amount(taken_over)
    turn, turn_ends = amount(turn), amount(turn_ends)
    if not (state and owner and fingerprint and about and gone and ends and since and timeout and taken_over and turn and turn_ends)
    then
        return nil, true
    end
    return {
        state = state, owner = owner, fingerprint = fingerprint, about = about, gone = gone == '1', ends = ends, since = since,
        timeout = timeout, taken_over = taken_over, turn = turn, turn_ends = turn_ends,
    }
end

-- Where it stands now: a claim lapses with its lease, and what was being sent becomes unknown.
local function standing(found)
    local over = found.ends <= now
    local astray = over or found.ends > now + LONGEST
    if (found.state == 'claimed' and astray) or (found.state == 'done' and over) then
        return 'free'
    elseif found.state == 'sending' and (astray or found.gone) then
        return 'unknown'
    end
    return found.state
end

-- From when on an admin may settle what was sent: at once, if its owner has said itself that it is not at it any more; and never
-- before what was sent by another, from whom the owner has taken it over.
local function settle_from(found)
    local own = math.min(found.ends, now + LONGEST) + found.timeout
    if found.state == 'unknown' then
        own = math.min(found.since, now)
    end
    return math.max(own, found.taken_over)
end

-- Whether what is unknown may be sent again: first after then, to the same, and not too often, as was written down when it was sent.
local function may_be_sent_again(found, after, to)
    local read, about = pcall(cjson.decode, found.about)
    if not (after and read and type(about) == 'table') then
        return false
    end
    local first, sends = tonumber(about.first), type(about.reservations) == 'table' and #about.reservations or 0
    return first and after < first and first <= now + SKEW and about.to == to and sends < MOST_SENDS
end

-- Writes a record down. What was sent and is not settled has no end; the rest lives as long as it counts.
local function write(key, unsettled, id, changed)
    redis.call('HSET', key, 'state', changed.state, 'owner', changed.owner, 'fingerprint', changed.fingerprint,
        'about', changed.about, 'gone', changed.gone and '1' or '0', 'until', int(changed.ends), 'since', int(changed.since),
        'timeout', int(changed.timeout), 'taken_over', int(changed.taken_over), 'turn', int(changed.turn),
        'turn_until', int(changed.turn_ends))
    if changed.meta then
        redis.call('HSET', key, 'meta', changed.meta, 'body', changed.body)
    else
        redis.call('HDEL', key, 'meta', 'body')
    end
    if changed.state == 'sending' or changed.state == 'unknown' then
        redis.call('PERSIST', key)
        redis.call('ZADD', unsettled, int(changed.since), id)
    else
        redis.call('ZREM', unsettled, id)
        live(key, math.max(changed.ends, changed.turn > 0 and changed.turn_ends or 0) - now)
    end
end

local function forget(key, unsettled, id)
    redis.call('DEL', key)
    redis.call('ZREM', unsettled, id)
end

-- Done, with an answer as keeping gives it: stored, fresh, expires, meta, body.
local function done(changed, _, _, expires, meta, body)
    changed.state, changed.ends = 'done', math.min(tonumber(expires), LIMIT - 1)
    changed.meta, changed.body = meta, body
end
