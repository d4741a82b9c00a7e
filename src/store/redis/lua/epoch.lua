-- Looks whether the records of money are those the caller has known, and founds them if there were never any. A loss that is
-- noticed is written down: from then on nobody pays, not even who knows nothing of it.
-- KEYS: epoch, owners, days, unsettled writes. ARGV: nonce, the epoch the caller knows or nothing, one to found.
if not id and not lost and known == '' and redis.call('EXISTS', KEYS[2], KEYS[3], KEYS[4]) == 0 then
    found()
    return {nonce, 'is', candidate}
end
if follows() then
    return lost and {nonce, 'lost'} or {nonce, 'is', id}
end
local noticed = add(lost, known)
if noticed and noticed ~= lost then
    redis.call('HSET', KEYS[1], 'lost', noticed)
end
return {nonce, 'lost'}
