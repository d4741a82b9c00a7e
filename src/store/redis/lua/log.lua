-- The changes from a number on, and the number of the latest. KEYS: seq, log. ARGV: nonce, number.
local entries = redis.pcall('XRANGE', KEYS[2], ARGV[2] .. '-0', '+')
local changes = {}
for i, entry in ipairs(entries.err and {} or entries) do
    changes[i] = {entry[1], entry[2][2]}
end
return {nonce, tonumber(redis.call('GET', KEYS[1])) or 0, changes}
