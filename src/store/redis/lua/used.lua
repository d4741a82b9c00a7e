-- What caps have used. KEYS: epoch, then the caps. ARGV: nonce, epoch.
if not unbroken(KEYS[1], ARGV[2]) then
    return {nonce, 'lost'}
end
local reply = {nonce, 'used'}
for i = 2, #KEYS do
    local cap = counter(KEYS[i])
    if not cap then
        return {nonce, 'broken'}
    end
    reply[i + 1] = cap.used
end
return reply
