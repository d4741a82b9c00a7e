-- Writes down that it is being sent, if its owner still has half of its lease.
-- KEYS: epoch, record, unsettled. ARGV: nonce, epoch, id, owner, lease, timeout, about.
local key, unsettled, id, lease = KEYS[2], KEYS[3], ARGV[3], tonumber(ARGV[5])

if not unbroken(KEYS[1], ARGV[2]) then
    return {nonce, 'lost'}
end
local found, unreadable = record(key, unsettled, id)
if unreadable then
    return {nonce, 'broken'}
end
if not found or found.owner ~= ARGV[4] or found.ends <= now + math.floor(lease / 2) then
    return {nonce, 'no'}
end
local state = standing(found)
if state ~= 'claimed' and state ~= 'sending' then
    return {nonce, 'no'}
end
found.state, found.since, found.ends = 'sending', now, now + lease
found.timeout, found.about = tonumber(ARGV[6]), ARGV[7]
write(key, unsettled, id, found)
return {nonce, 'yes'}
