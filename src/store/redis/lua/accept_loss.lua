-- Says that a loss is known: a new epoch replaces all that were lost, and the one in force. Does nothing if nothing is lost.
-- KEYS: epoch. ARGV: nonce, the epoch the caller knows or nothing, the new one.
if follows() and not lost then
    return {nonce, id}
end
for gone in string.gmatch(lost or '', '%x+') do
    past = add(past, gone)
end
past = add(add(past, id), known)
found()
if past then
    -- A hundred of them, the latest: no instance lives to see so many.
    redis.call('HSET', KEYS[1], 'past', string.sub(past, -3299))
end
redis.call('HDEL', KEYS[1], 'lost')
return {nonce, candidate}
