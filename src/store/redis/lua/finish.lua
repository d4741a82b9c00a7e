-- Ends a write by its owner, also one that has become unknown meanwhile. Ending it twice in the same way ends it once.
-- KEYS: record, unsettled. ARGV: nonce, id, owner, end (done, free, unknown), and the answer.
local key, unsettled, id, ending = KEYS[1], KEYS[2], ARGV[2], ARGV[4]

local found, unreadable = record(key, unsettled, id)
if unreadable then
    return {nonce, 'broken'}
elseif not found then
    return {nonce, ending == 'free' and 'yes' or 'no'}
elseif found.owner ~= ARGV[3] then
    return {nonce, 'no'}
end

local at_it = found.state == 'claimed' or found.state == 'sending'
if ending == found.state then
    return {nonce, 'yes'}
elseif ending == 'done' and (at_it or found.state == 'unknown') then
    done(found, unpack(ARGV, 5, 9))
elseif ending == 'unknown' and at_it then
    found.state = 'unknown'
elseif ending == 'free' and found.taken_over > 0 and (found.state == 'sending' or found.state == 'unknown') then
    -- It may not even have heard that it was sent before.
    found.state = 'unknown'
elseif ending == 'free' and at_it then
    if found.turn == 0 or found.turn_ends <= now then
        forget(key, unsettled, id)
        return {nonce, 'yes'}
    end
    found.state, found.ends = 'free', found.turn_ends
else
    return {nonce, 'no'}
end
write(key, unsettled, id, found)
return {nonce, 'yes'}
