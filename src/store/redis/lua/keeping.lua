-- Keeps an answer, unless one is there that was stored later. One from the future (a clock was set back) would stay too long.
local function keep(key, stored, fresh, expires, meta, body)
    local known = tonumber(fields(key, 'stored')[1])
    if known and known > tonumber(stored) and known <= now + SKEW then
        return
    end
    redis.call('DEL', key)
    redis.call('HSET', key, 'stored', stored, 'fresh', fresh, 'meta', meta, 'body', body)
    live(key, tonumber(expires) - now)
end
