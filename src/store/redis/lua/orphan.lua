-- What an instance had open that has given no sign of life for ten seconds becomes unknown: whether it was sent, nobody knows. It
-- stays spent. Ten, where five mean gone: who was only frozen may settle it even so.
-- KEYS: epoch, owners. ARGV: nonce, epoch, this instance, what the names of attempts, sums and open attempts begin with, how many
-- at most. Says how many there were.
local owners, me, attempts, sums, opened, most = KEYS[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6], tonumber(ARGV[7])
local SILENT = 10 * SKEW

local function orphan(key, owner)
    local found = redis.call('TYPE', key).ok == 'hash' and row(key)
    if not found or found.state ~= 'open' or found.owner ~= owner then
        return
    end
    resum(found, sums .. found.day, sum_of('unknown', 'orphaned', found.kind), found.micros)
    redis.call('HSET', key, 'state', 'unknown', 'outcome', 'orphaned')
end

if not unbroken(KEYS[1], ARGV[2]) then
    return {nonce, 'lost'}
end
redis.call('ZADD', owners, 'XX', int(now), me)
local gone = redis.call('ZRANGEBYSCORE', owners, '-inf', int(now - SILENT), 'LIMIT', '0', ARGV[7])
-- Later than now was written before a clock was set back.
for _, owner in ipairs(redis.call('ZRANGEBYSCORE', owners, int(now + SILENT), '+inf', 'LIMIT', '0', ARGV[7])) do
    gone[#gone + 1] = owner
end
local looked_at = 0
for _, owner in ipairs(gone) do
    if looked_at < most then
        for _, id in ipairs(redis.call('SRANDMEMBER', opened .. owner, int(most - looked_at))) do
            orphan(attempts .. id, owner)
            redis.call('SREM', opened .. owner, id)
            looked_at = looked_at + 1
        end
        if redis.call('EXISTS', opened .. owner) == 0 then
            redis.call('ZREM', owners, owner)
        end
    end
end
return {nonce, 'orphaned', looked_at}
