-- What the scripts of money share. Amounts are whole numbers below 2^53; whatever does not read as one is refused, not repaired.
local DAY, LIMIT = 1440 * MINUTE, 9007199254740992
-- How long sums and unsettled rows stay; how long it is remembered of an id that it is over.
local KEPT, OVER = 400 * DAY, 2 * DAY

-- Are these the records the caller knows, with nothing lost?
local function unbroken(key, known)
    local id, lost = unpack(redis.call('HMGET', key, 'id', 'lost'))
    return id == known and not lost
end

local function amount(text)
    local number = type(text) == 'string' and string.match(text, '^%d+$') and tonumber(text)
    return number and number < LIMIT and number
end

-- What a cap has used; nothing if that cannot be read.
local function counter(key)
    local used, ends, born = unpack(redis.call('HMGET', key, 'used', 'ends', 'born'))
    if not used and not born then
        return {used = 0, ends = '0', born = int(now), times = 0, new = true}
    end
    used = amount(used)
    return used and born and {used = used, ends = ends or '0', born = born, times = 0}
end

-- The name of a sum: `n` before it holds how many, `m` what they come to.
local function sum_of(state, outcome, kind)
    return #state .. ':' .. state .. #outcome .. ':' .. outcome .. kind
end

-- Can so much be added? Sums are counted by the store, in 64 bits.
local function has_room(sums, name, count, micros)
    local counted, summed = unpack(redis.call('HMGET', sums, 'n' .. name, 'm' .. name))
    return (tonumber(counted) or 0) + count < 4e18 and (tonumber(summed) or 0) + micros < 4e18
end

local function add_to(sums, name, count, micros)
    redis.call('HINCRBY', sums, 'n' .. name, int(count))
    redis.call('HINCRBY', sums, 'm' .. name, int(micros))
    live(sums, KEPT)
end

-- Takes one out of a sum. A sum that is forgotten stays so.
local function take_from(sums, name, micros)
    local count = tonumber(redis.call('HGET', sums, 'n' .. name)) or 0
    if count <= 1 then
        redis.call('HDEL', sums, 'n' .. name, 'm' .. name)
    else
        redis.call('HINCRBY', sums, 'n' .. name, '-1')
        if micros > 0 then
            redis.call('HINCRBY', sums, 'm' .. name, '-' .. int(micros))
        end
    end
end

-- Sums are found by their days: in order, and no more of them than can be kept.
local function note_day(days, day)
    if redis.call('ZADD', days, '0', day) == 1 then
        redis.call('ZREMRANGEBYRANK', days, '0', '-1001')
    end
    live(days, KEPT)
end
