-- Settles what is unknown by what an admin has found out. From then on nothing is its former owner's.
-- KEYS: epoch, record, unsettled. ARGV: nonce, epoch, id, owner, the settling's own id, what was found (sent, not_sent), until when
-- another turn is remembered, and the answer. Settling twice settles once.
local key, unsettled, id = KEYS[2], KEYS[3], ARGV[3]

if not unbroken(KEYS[1], ARGV[2]) then
    return {nonce, 'lost'}
end
local found, unreadable = record(key, unsettled, id)
if unreadable then
    return {nonce, 'broken'}
end
if found and found.owner == ARGV[5] then
    return {nonce, 'settled', found.about}
elseif not found or found.owner ~= ARGV[4] then
    return {nonce, 'none'}
end
-- A lease that a clock began which was set back since ends by this one. Its owner may be at it for as long as any.
if found.state == 'sending' and found.ends > now + LONGEST then
    found.ends, found.gone = now + LONGEST, true
    write(key, unsettled, id, found)
end
-- What was sent later than now was sent now.
if found.since > now and (found.state == 'sending' or found.state == 'unknown') then
    found.since = now
    write(key, unsettled, id, found)
end
local state = standing(found)
if state ~= 'sending' and state ~= 'unknown' then
    return {nonce, 'none'}
elseif settle_from(found) > now then
    return {nonce, 'not before', settle_from(found)}
elseif state == 'sending' then
    return {nonce, 'none'}
end

found.owner = ARGV[5]
if ARGV[6] == 'sent' then
    done(found, unpack(ARGV, 8, 12))
else
    found.state, found.ends = 'free', tonumber(ARGV[7])
    found.turn, found.turn_ends = math.min(found.turn + 1, 4294967295), found.ends
end
write(key, unsettled, id, found)
return {nonce, 'settled', found.about}
