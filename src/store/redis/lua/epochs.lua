-- The epoch: which unbroken run of records of money this is. A hash: `id` of the one in force, if any; `made`; `lost`, earlier
-- ones whose loss an instance has noticed and nobody has accepted; `past`, those whose loss was accepted. Lists of ids, each of
-- 32 digits, with a space between.
local id, lost, past = unpack(redis.call('HMGET', KEYS[1], 'id', 'lost', 'past'))
local known, candidate = ARGV[2], ARGV[3]

local function listed(list, one)
    return list and string.find(list, one, 1, true) ~= nil
end

local function add(list, one)
    if not one or one == '' or listed(list, one) then
        return list
    end
    return list and list .. ' ' .. one or one
end

-- Is the caller's own epoch the one in force, or replaced by it with a person's knowledge?
local function follows()
    return id and (known == '' or known == id or listed(past, known))
end

local function found()
    redis.call('HSET', KEYS[1], 'id', candidate, 'made', int(now))
end
