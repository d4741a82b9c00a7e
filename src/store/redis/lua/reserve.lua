-- Reserves in every cap or in none, and opens the ledger's row.
-- KEYS: epoch, attempt, owners, what this instance has open, days, the day's sums, then the caps, as often as they are named.
-- ARGV: nonce, epoch, id, instance, amount, day, kind, then of each cap: most, and when its window ends.
local attempt, owners, opened, days, sums = unpack(KEYS, 2, 6)
local id, instance, price, day, kind = ARGV[3], ARGV[4], tonumber(ARGV[5]), ARGV[6], ARGV[7]
local FORGOTTEN = 40 * DAY

if not unbroken(KEYS[1], ARGV[2]) then
    return {nonce, 'lost'}
end

local counters = {}
for i = 7, #KEYS do
    local key, ends = KEYS[i], ARGV[2 * i - 5]
    if tonumber(ends) <= now - FORGOTTEN then
        return {nonce, 'over'}
    end
    local cap = counters[key] or counter(key)
    if not cap then
        return {nonce, 'broken'}
    end
    counters[key] = cap
    cap.times = cap.times + 1
    if tonumber(ends) > tonumber(cap.ends) then
        cap.ends = ends
    end
end

local function yes()
    local reply = {nonce, 'yes'}
    for i = 7, #KEYS do
        reply[i - 4] = counters[KEYS[i]].used
    end
    return reply
end

local known = redis.call('TYPE', attempt).ok
if known == 'string' and redis.call('GET', attempt) ~= 'settled' then
    return {nonce, 'late'}
elseif known ~= 'none' then
    return yes()
end

for i = 7, #KEYS do
    local cap = counters[KEYS[i]]
    if cap.used + cap.times * price > tonumber(ARGV[2 * i - 6]) then
        return {nonce, 'no', i - 7, cap.used}
    end
end
local sum = sum_of('open', '', kind)
if not has_room(sums, sum, 1, price) then
    return {nonce, 'much'}
end
redis.call('EXISTS', owners, opened, days)

local held = {}
for i = 7, #KEYS do
    held[#held + 1] = string.sub(KEYS[i], -64) .. ' ' .. counters[KEYS[i]].born
end
for key, cap in pairs(counters) do
    cap.used = cap.used + cap.times * price
    redis.call('HSET', key, 'used', int(cap.used), 'ends', cap.ends, 'born', cap.born)
    live(key, tonumber(cap.ends) + FORGOTTEN + DAY - now)
end
redis.call('HSET', attempt, 'state', 'open', 'outcome', '', 'micros', int(price), 'day', day, 'kind', kind,
    'caps', table.concat(held, ','), 'owner', instance, 'at', int(now))
live(attempt, KEPT)
redis.call('ZADD', owners, int(now), instance)
redis.call('SADD', opened, id)
live(opened, KEPT)
note_day(days, day)
add_to(sums, sum, 1, price)
return yes()
