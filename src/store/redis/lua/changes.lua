-- The ordered log of changes, which instances follow.

-- Parts as one text: each with its length before it.
local function pack(...)
    local parts = {}
    for i = 1, select('#', ...) do
        local part = select(i, ...)
        parts[i] = #part .. ':' .. part
    end
    return table.concat(parts)
end

-- The number of the latest change. A new count begins with the time in milliseconds: numbers go on upwards, even when the
-- store has been emptied, and nobody takes a new change for an old one.
local function latest(seq)
    local number = tonumber(redis.call('GET', seq))
    if not number then
        number = math.floor(now / 1000)
        redis.call('SET', seq, int(number))
    end
    return number
end

-- Writes a change down and tells all instances. Returns its number. A log that is ahead of the count is of no use to anyone.
local function tell(seq, log, channel, change)
    local number = latest(seq) + 1
    redis.call('SET', seq, int(number))
    local function append()
        return redis.pcall('XADD', log, 'MAXLEN', '~', '1000', int(number) .. '-0', 'change', change)
    end
    if type(append()) ~= 'string' then
        redis.call('DEL', log)
        append()
    end
    live(log, 24 * 60 * MINUTE)
    redis.call('PUBLISH', channel, pack(int(number), change))
    return number
end
