-- Settles an attempt, once. Of an id that nobody knows it says that it is given up: what comes late is refused.
-- KEYS: epoch, attempt. ARGV: nonce, epoch, id, what the names of caps, sums and open attempts begin with, state, cost, outcome.
local attempt, id, caps, sums, opened = KEYS[2], ARGV[3], ARGV[4], ARGV[5], ARGV[6]
local state, cost, outcome = ARGV[7], tonumber(ARGV[8]), ARGV[9]

if not unbroken(KEYS[1], ARGV[2]) then
    return {nonce, 'lost'}
end
local known = redis.call('TYPE', attempt).ok
if known == 'none' then
    redis.call('SET', attempt, 'given up', 'PX', milliseconds(OVER))
end
if known == 'none' or known == 'string' then
    return {nonce, 'same'}
end
local found = row(attempt)
if not found then
    return {nonce, 'broken'}
end
if state == 'unknown' then
    if found.state == 'unknown' then
        return {nonce, 'same'}
    end
    cost = found.micros
end

-- What its counters come to. One that is forgotten stays so, also if there is another of the same name by now.
local times, counters = {}, {}
for digest, born in string.gmatch(found.caps, '(%x+) (%d+)') do
    local held = caps .. digest
    times[held] = {count = (times[held] and times[held].count or 0) + 1, born = born}
end
for key, held in pairs(times) do
    local cap = counter(key)
    if not cap then
        return {nonce, 'broken'}
    end
    if not cap.new and cap.born == held.born then
        local others = cap.used - held.count * found.micros
        local used = others + held.count * cost
        if others < 0 then
            return {nonce, 'broken'}
        elseif used >= LIMIT then
            return {nonce, 'much'}
        end
        counters[key] = used
    end
end
local day, name = sums .. found.day, sum_of(state, outcome, found.kind)
if not has_room(day, name, 1, cost) then
    return {nonce, 'much'}
end
redis.call('EXISTS', opened .. found.owner)

for key, used in pairs(counters) do
    redis.call('HSET', key, 'used', int(used))
end
resum(found, day, name, cost)
redis.call('SREM', opened .. found.owner, id)
if state == 'unknown' then
    redis.call('HSET', attempt, 'state', state, 'outcome', outcome)
else
    redis.call('SET', attempt, 'settled', 'PX', milliseconds(OVER))
end
return {nonce, 'changed'}
