-- Forgets an answer and whatever is under way for it. A flight that began before leaves nothing: the mark says so.
-- KEYS: answer, lease, landed, purged. ARGV: nonce, channel of landings, digest.
local waited = fields(KEYS[2], 'waited')[1]
redis.call('DEL', KEYS[1], KEYS[2], KEYS[3])
redis.call('SET', KEYS[4], int(now), 'PX', milliseconds(60 * MINUTE))
if waited then
    redis.call('PUBLISH', ARGV[2], ARGV[3])
end
return {nonce}
