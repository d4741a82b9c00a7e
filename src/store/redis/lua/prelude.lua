-- What every script begins with. The first argument comes back first: it says to which question a reply belongs.
local nonce = ARGV[1]
local MINUTE = 60000000
local SKEW = 1000000

-- A whole number as text; tostring would round it to 14 digits.
local function int(number)
    return string.format('%.0f', number)
end

-- A time to live that is never too short: microseconds as milliseconds, and a minute more; at most ten years.
local function milliseconds(micros)
    return int(math.min(math.floor(math.max(micros, 0) / 1000) + 60000, 315360000000))
end

local function live(key, micros)
    redis.call('PEXPIRE', key, milliseconds(micros))
end

-- The fields of a hash; nothing, if the key holds something of another kind.
local function fields(key, ...)
    local values = redis.pcall('HMGET', key, ...)
    return values.err and {} or values
end

-- Makes room for a hash where an old version has left something else.
local function expect_hash(key)
    if redis.call('TYPE', key).ok ~= 'hash' then
        redis.call('DEL', key)
    end
end
