-- This instance is alive. Says how many are, and the number of the latest change. Who leaves has nothing open any more: what is,
-- is left behind.
-- KEYS: instances, seq, owners. ARGV: nonce, instance, whether it leaves.
if redis.call('TYPE', KEYS[1]).ok ~= 'zset' then
    redis.call('DEL', KEYS[1])
end
if ARGV[3] == '1' then
    redis.call('ZREM', KEYS[1], ARGV[2])
    redis.call('ZADD', KEYS[3], 'XX', '0', ARGV[2])
else
    redis.call('ZADD', KEYS[1], int(now), ARGV[2])
    redis.call('ZADD', KEYS[3], 'XX', int(now), ARGV[2])
end
-- Silent for five seconds is gone; later than now was written before a clock was set back.
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', int(now - 5 * SKEW))
redis.call('ZREMRANGEBYSCORE', KEYS[1], int(now + 5 * SKEW), '+inf')
live(KEYS[1], 0)
return {nonce, now, redis.call('ZCARD', KEYS[1]), latest(KEYS[2])}
