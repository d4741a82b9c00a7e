-- Looks, and takes the lease if there is nothing to find.
-- KEYS: answer, lease, landed. ARGV: nonce, flight, time to live, look, since when it waits (or nothing), channel of landings,
-- digest.
-- Runs on a full store, too: otherwise each instance would fly for what another is bringing home. What it writes is a line a
-- flight, of which there are so many and no more, and is gone when the flight is, or a minute after its instance.
local answer, lease, landed = KEYS[1], KEYS[2], KEYS[3]
local flight, lasts, waiting = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[5])

-- No lease is longer: what says so was written by nobody, or by a clock that was set back. Those who waited for a holder that
-- has vanished wait for the next.
local LONGEST = 10 * MINUTE
local holder, ends, waited = unpack(fields(lease, 'flight', 'until', 'waited'))
ends = tonumber(ends)
if not ends or ends <= now or ends > now + LONGEST then
    holder = holder == flight and flight or false
end

-- Whoever is answered needs no lease. It may have one, if it did not hear that it was given it.
local function without_lease(...)
    if holder == flight then
        redis.call('DEL', lease)
        if waited then
            redis.call('PUBLISH', ARGV[6], ARGV[7])
        end
    end
    return {nonce, ...}
end

local at, left, word, lasted, meta, body = unpack(fields(landed, 'at', 'left', 'word', 'until', 'meta', 'body'))
if waiting and (tonumber(at) or -1) >= waiting then
    if left == 'word' then
        return without_lease('ended', word)
    elseif left == 'kept' then
        local kept = meta and {meta, body} or fields(answer, 'meta', 'body')
        if kept[1] and kept[2] then
            return without_lease('found', now, kept[1], kept[2])
        end
    end
end

if ARGV[4] == '1' then
    local stored, fresh, known, text = unpack(fields(answer, 'stored', 'fresh', 'meta', 'body'))
    stored, fresh = tonumber(stored), tonumber(fresh)
    if stored and fresh and stored <= now + SKEW and now < fresh and known and text then
        return without_lease('found', now, known, text)
    end
end

if left == 'alone' and (tonumber(lasted) or 0) > now then
    return without_lease('alone')
end

if not holder or holder == flight then
    expect_hash(lease)
    redis.call('HSET', lease, 'flight', flight, 'until', int(now + lasts))
    if left == 'nothing' then
        -- Others were told of that landing, too: they are on their way.
        redis.call('HSET', lease, 'waited', '1')
    end
    live(lease, lasts)
    return {nonce, 'taken', now}
end
redis.call('HSET', lease, 'waited', '1')
live(lease, ends - now)
return {nonce, 'held', math.min(waiting or now, now), ends - now}
