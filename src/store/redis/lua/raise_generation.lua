-- Raises a route's purge generation, once. KEYS: generations, the operation, seq, log. ARGV: nonce, channel of changes, route.
local done = redis.call('GET', KEYS[2])
if done then
    return {nonce, done}
end
-- Not counted from one: after a store came back empty it must be above what instances still know.
local known = tonumber(redis.call('HGET', KEYS[1], ARGV[3]) or '0')
local generation = int(math.max(known + 1, math.floor(now / 1000)))
redis.call('HSET', KEYS[1], ARGV[3], generation)
redis.call('SET', KEYS[2], generation, 'PX', '600000')
tell(KEYS[3], KEYS[4], ARGV[2], pack('generation', ARGV[3], generation))
return {nonce, generation}
