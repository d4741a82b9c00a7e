-- All that is followed. KEYS: seq, switches, generations, pauses. ARGV: nonce.
local pauses = redis.pcall('HGETALL', KEYS[4])
return {
    nonce, tonumber(redis.call('GET', KEYS[1])) or 0, now,
    redis.call('HGETALL', KEYS[2]), redis.call('HGETALL', KEYS[3]), pauses.err and {} or pauses,
}
