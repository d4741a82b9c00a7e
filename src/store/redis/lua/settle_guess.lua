-- Settles a guess, once. KEYS: the operation, then the subjects. ARGV: nonce, operation, misses, window, first, max, missed.
local most, window = tonumber(ARGV[3]), tonumber(ARGV[4])
local first, longest, missed = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1'

-- A lock uses up the misses that led to it; a further one is longer while the last still weighs.
local function lock(key, found)
    local before = found.lock and found.lock.number or 0
    local length = math.min(first * 2 ^ math.min(before, 60), longest)
    for _, name in ipairs(redis.call('HKEYS', key)) do
        if string.sub(name, 1, 2) == 'm:' then
            redis.call('HDEL', key, name)
        end
    end
    redis.call('HSET', key, 'lock', int(now + length) .. ' ' .. int(length) .. ' ' .. int(before + 1))
    found.last = math.max(found.last, now + 2 * length + window)
end

if not redis.call('SET', KEYS[1], '1', 'NX', 'PX', '600000') then
    return {nonce}
end
for i = 2, #KEYS do
    local found = subject(KEYS[i], window)
    if missed or found.known then
        tidy(KEYS[i], found)
        redis.call('HDEL', KEYS[i], 'f:' .. ARGV[2])
        if missed and not locked(found) then
            redis.call('HSET', KEYS[i], 'm:' .. ARGV[2], int(now))
            found.last = math.max(found.last, now + window)
            if found.misses + 1 >= most then
                lock(KEYS[i], found)
            end
        end
        live(KEYS[i], found.last - now)
    end
end
return {nonce}
