-- Begins a guess: admitted for all subjects, or counted for none.
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
    if not found.flights[flight] then
        latest = math.max(latest, locked(found) or 0)
        full = full or found.misses + found.in_flight >= most
    end
end
if latest > 0 then
    return {nonce, 'locked', latest}
elseif full then
    return {nonce, 'full'}
end
for i = 2, #KEYS do
    local found = all[i]
    tidy(KEYS[i], found)
    if not found.flights[flight] then
        redis.call('HSET', KEYS[i], flight, int(expires))
    end
    live(KEYS[i], math.max(found.last, expires) - now)
end
return {nonce, 'admitted'}
