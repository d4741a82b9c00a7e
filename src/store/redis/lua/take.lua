-- Tests all buckets, then debits all or none. The arithmetic is that of bucket.rs, in whole numbers below 2^53.
-- KEYS: the buckets, as often as they are asked. ARGV: nonce, debit, then capacity, refill, per and cost of each.
-- A bucket is "left part at capacity refill per": what is in it, and the numbers it ran on until now.
local EXACT = 9007199254740992

local function full(numbers)
    return {
        capacity = numbers.capacity, refill = numbers.refill, per = numbers.per,
        left = numbers.capacity, part = 0, at = now, asked = 0, known = false, changed = false,
    }
end

-- What does not read as a bucket, or could not be counted with, is a new one. One that was last seen later than clocks may
-- be apart is dated now: nobody is to wait for a time that was never true.
local function load(key, numbers)
    local text = redis.pcall('GET', key)
    if type(text) ~= 'string' then
        return full(numbers)
    end
    local left, part, at, capacity, refill, per = string.match(text, '^(%d+) (%d+) (%d+) (%d+) (%d+) (%d+)$')
    if not per then
        return full(numbers)
    end
    left, part, at, capacity, refill, per = left + 0, part + 0, at + 0, capacity + 0, refill + 0, per + 0
    if per == 0 or refill == 0 or capacity * per + refill + per > EXACT then
        return full(numbers)
    end
    local early = at > now + MINUTE
    return {
        capacity = capacity, refill = refill, per = per,
        left = math.min(left, capacity), part = math.min(part, per - 1), at = early and now or at,
        asked = 0, known = true, changed = early,
    }
end

-- How long after `at` the bucket holds so much.
local function due(bucket, amount)
    local missing = (amount - bucket.left) * bucket.per - bucket.part
    return missing > 0 and math.floor((missing - 1) / bucket.refill) + 1 or 0
end

local function credit(bucket)
    local elapsed = math.max(0, now - bucket.at)
    if elapsed >= due(bucket, bucket.capacity) then
        bucket.left, bucket.part = bucket.capacity, 0
    else
        local earned = elapsed * bucket.refill + bucket.part
        bucket.left = bucket.left + math.floor(earned / bucket.per)
        bucket.part = earned % bucket.per
    end
    bucket.at = math.max(bucket.at, now)
end

local function renumber(bucket, numbers)
    if bucket.capacity == numbers.capacity and bucket.refill == numbers.refill and bucket.per == numbers.per then
        return
    end
    bucket.capacity, bucket.refill, bucket.per = numbers.capacity, numbers.refill, numbers.per
    bucket.left = math.min(bucket.left, bucket.capacity)
    bucket.part = bucket.left == bucket.capacity and 0 or math.min(bucket.part, bucket.per - 1)
    bucket.changed = true
end

-- How long from now until the bucket holds so much.
local function wait_for(bucket, amount)
    if amount > bucket.capacity then
        return math.huge
    elseif amount <= bucket.left then
        return 0
    end
    return math.max(0, bucket.at + due(bucket, amount) - now)
end

-- Nothing is written for a refusal: what has accrued follows from what is there. Only a bucket without an end gets one.
local function save(key, bucket)
    if bucket.changed or (bucket.known and redis.call('PTTL', key) == -1) then
        local text = string.format('%.0f %.0f %.0f %.0f %.0f %.0f', bucket.left, bucket.part, bucket.at, bucket.capacity,
            bucket.refill, bucket.per)
        redis.call('SET', key, text, 'PX', milliseconds(wait_for(bucket, bucket.capacity)))
    end
end

local buckets, slowest, wait = {}, 0, 0
for i, key in ipairs(KEYS) do
    local first = 4 * i - 1
    local numbers = {
        capacity = tonumber(ARGV[first]), refill = tonumber(ARGV[first + 1]), per = tonumber(ARGV[first + 2]),
    }
    local bucket = buckets[key] or load(key, numbers)
    buckets[key] = bucket
    credit(bucket)
    renumber(bucket, numbers)
    bucket.asked = bucket.asked + tonumber(ARGV[first + 3])
    local until_paid = wait_for(bucket, bucket.asked)
    if until_paid > wait then
        slowest, wait = i - 1, until_paid
    end
end

local passed = wait == 0
for key, bucket in pairs(buckets) do
    if passed and ARGV[2] == '1' and bucket.asked > 0 then
        bucket.left = bucket.left - bucket.asked
        bucket.changed = true
    end
    save(key, bucket)
end

local reply = {nonce, passed and 1 or 0, slowest, wait == math.huge and -1 or wait}
for _, key in ipairs(KEYS) do
    reply[#reply + 1] = buckets[key].left
    reply[#reply + 1] = wait_for(buckets[key], buckets[key].capacity)
end
return reply
