-- Raises a route's purge generation, once. KEYS: generations, the operation, seq, log. ARGV: nonce, channel of changes, route.
local done = redis.call('GET', KEYS[2])
if done then
    return {nonce, done}
end
local generation = int(redis.call('HINCRBY', KEYS[1], ARGV[3], 1))
redis.call('SET', KEYS[2], generation, 'PX', '600000')
tell(KEYS[3], KEYS[4], ARGV[2], pack('generation', ARGV[3], generation))
return {nonce, generation}
