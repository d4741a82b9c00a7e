-- Begins a guess: in flight for all subjects, for those alone that are locked, or for none.
-- KEYS: the operation, then the subjects. ARGV: nonce, operation, misses, window, when it expires.
local flight, most, window = 'f:' .. ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local expires = math.min(tonumber(ARGV[5]), now + DAY)
if redis.call('EXISTS', KEYS[1]) == 1 then
    return {nonce, 'admitted'}
end
local all, latest, full = {}, 0, false
for i = 2, #KEYS do
    local found = subject(KEYS[i], window)
    all[i] = found
    if not found.flights[flight] and found.misses + found.in_flight >= most then
        full, found.full = true, true
    else
        latest = math.max(latest, locked(found) or 0)
    end
end
if full and latest == 0 then
    return {nonce, 'full'}
end
for i = 2, #KEYS do
    local found = all[i]
    if latest == 0 or locked(found) and not found.full then
        tidy(KEYS[i], found)
        if not found.flights[flight] then
            redis.call('HSET', KEYS[i], flight, int(expires))
        end
        live(KEYS[i], math.max(found.last, expires) - now)
    end
end
if latest > 0 then
    return {nonce, 'locked', latest}
end
return {nonce, 'admitted'}
