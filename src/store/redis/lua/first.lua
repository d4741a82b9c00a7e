-- Is this the first time in a while? KEYS: the mark. ARGV: nonce, for how long it is kept.
local lasts = tonumber(redis.call('GET', KEYS[1]))
if lasts and lasts > now then
    return {nonce, 0}
end
local keep = tonumber(ARGV[2])
redis.call('SET', KEYS[1], int(now + keep), 'PX', milliseconds(keep))
return {nonce, 1}
