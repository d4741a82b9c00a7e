-- One subject's lockout, by the rules of lockout.rs. A hash: `f:` and a flight's id hold when it expires, `m:` and its id when
-- its miss was confirmed, `lock` is "until length number". What cannot be true (it is in the future beyond all measure) does
-- not count: it would lock for ever. No guess flies for more than a day.
local DAY, AGES = 1440 * MINUTE, 315360000000000

local function read_lock(text)
    local ends, length, number = string.match(text, '^(%d+) (%d+) (%d+)$')
    return ends and {ends = tonumber(ends), length = tonumber(length), number = tonumber(number)}
end

-- What counts now, and the fields that do not.
local function subject(key, window)
    local all = redis.pcall('HGETALL', key)
    local found = {flights = {}, in_flight = 0, misses = 0, last = now, idle = {}, known = all.err ~= nil or #all > 0}
    for i = 1, all.err and 0 or #all, 2 do
        local name, at = all[i], tonumber(all[i + 1])
        local kind = string.sub(name, 1, 2)
        if kind == 'f:' and at and at > now and at <= now + 2 * DAY then
            found.flights[name], found.in_flight = at, found.in_flight + 1
            found.last = math.max(found.last, at)
        elseif kind == 'm:' and at and at + window > now and at <= now + window then
            found.misses = found.misses + 1
            found.last = math.max(found.last, at + window)
        else
            local lock = name == 'lock' and read_lock(all[i + 1])
            local weighs = lock and lock.ends + lock.length + window or 0
            if weighs > now and lock.ends <= now + AGES then
                found.lock = lock
                found.last = math.max(found.last, weighs)
            else
                found.idle[#found.idle + 1] = name
            end
        end
    end
    return found
end

local function locked(found)
    return found.lock and found.lock.ends > now and found.lock.ends
end

-- Drops what does not count any more and sets the end of the rest.
local function tidy(key, found)
    expect_hash(key)
    for _, name in ipairs(found.idle) do
        redis.call('HDEL', key, name)
    end
    live(key, found.last - now)
end
