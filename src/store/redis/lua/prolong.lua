-- Renews the lease of an owner that is at it, also of one that was thought gone.
-- KEYS: record, unsettled. ARGV: nonce, id, owner, lease.
local found, unreadable = record(KEYS[1], KEYS[2], ARGV[2])
if unreadable then
    return {nonce, 'broken'}
end
if not found or found.owner ~= ARGV[3] or (found.state ~= 'claimed' and found.state ~= 'sending') then
    return {nonce, 'no'}
end
found.ends, found.gone = now + tonumber(ARGV[4]), false
write(KEYS[1], KEYS[2], ARGV[2], found)
return {nonce, 'yes'}
