-- Forgets a subject's misses and lock; guesses in flight still count. KEYS: subject. ARGV: nonce.
local names = redis.pcall('HKEYS', KEYS[1])
if names.err then
    redis.call('DEL', KEYS[1])
    return {nonce}
end
for _, name in ipairs(names) do
    if string.sub(name, 1, 2) ~= 'f:' then
        redis.call('HDEL', KEYS[1], name)
    end
end
return {nonce}
