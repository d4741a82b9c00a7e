-- Claims an intention, or says what stands in the way. The same owner claims once, however often it asks.
-- KEYS: epoch, record, unsettled. ARGV: nonce, epoch, id, owner, fingerprint, lease, after when and where to what is unknown must have
-- been sent to be sent again (or nothing), only looks, may write: where it may not, what would be written is refused.
local key, unsettled, id, owner, fingerprint = KEYS[2], KEYS[3], ARGV[3], ARGV[4], ARGV[5]
local after, to, look = tonumber(ARGV[7]), ARGV[8], ARGV[9] == '1'

if not unbroken(KEYS[1], ARGV[2]) then
    return {nonce, 'lost'}
end
local found, unreadable = record(key, unsettled, id)
if unreadable then
    return {nonce, 'broken'}
end

local state, turn = found and standing(found) or 'free', found and found.turn or 0
if state == 'free' then
    if look then
        return {nonce, 'free'}
    end
    state, turn = 'claimed', found and found.turn_ends > now and turn or 0
elseif found.fingerprint ~= fingerprint then
    return {nonce, 'reused'}
elseif state == 'done' then
    local kept = redis.call('HMGET', key, 'meta', 'body')
    return {nonce, 'done', kept[1] or '', kept[2] or ''}
elseif state == 'unknown' then
    if look or not may_be_sent_again(found, after, to) then
        return {nonce, 'unknown'}
    end
    state, found.taken_over = 'sending', settle_from(found)
elseif look or found.owner ~= owner then
    return {nonce, 'held', found.ends - now}
end
if ARGV[10] ~= '1' then
    return {nonce, 'full'}
end

-- What was known of another send is not known of this one, unless it goes on.
local changed = state == 'sending' and found
    or {since = now, timeout = 0, taken_over = 0, about = '', turn_ends = found and found.turn_ends or 0}
changed.state, changed.owner, changed.fingerprint, changed.gone = state, owner, fingerprint, false
changed.ends, changed.turn = now + tonumber(ARGV[6]), turn
write(key, unsettled, id, changed)
if state == 'sending' then
    return {nonce, 'again', turn, changed.about}
end
return {nonce, 'owned', turn}
