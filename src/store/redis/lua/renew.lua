-- Keeps a lease for longer, if it is still the flight's own. KEYS: lease. ARGV: nonce, flight, time to live.
if fields(KEYS[1], 'flight')[1] ~= ARGV[2] then
    return {nonce, 0}
end
redis.call('HSET', KEYS[1], 'until', int(now + tonumber(ARGV[3])))
live(KEYS[1], tonumber(ARGV[3]))
return {nonce, 1}
