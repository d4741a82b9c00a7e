-- Keeps calls away from a provider; a shorter pause never cuts a longer one.
-- KEYS: pauses, seq, log. ARGV: nonce, channel of changes, provider, until.
local provider, ends = ARGV[3], ARGV[4]
expect_hash(KEYS[1])
local known = tonumber(redis.call('HGET', KEYS[1], provider))
if known and known >= tonumber(ends) then
    return {nonce}
end
redis.call('HSET', KEYS[1], provider, ends)
local all, last = redis.call('HGETALL', KEYS[1]), now
for i = 1, #all, 2 do
    local at = tonumber(all[i + 1]) or 0
    if at <= now then
        redis.call('HDEL', KEYS[1], all[i])
    end
    last = math.max(last, at)
end
live(KEYS[1], last - now)
tell(KEYS[2], KEYS[3], ARGV[2], pack('paused', provider, ends))
return {nonce}
