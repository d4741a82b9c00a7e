-- Some days' sums. KEYS: epoch, then the sums of each day. ARGV: nonce, epoch.
if not unbroken(KEYS[1], ARGV[2]) then
    return {nonce, 'lost'}
end
local reply = {nonce, 'sums'}
for i = 2, #KEYS do
    reply[i + 1] = redis.call('HGETALL', KEYS[i])
end
return reply
