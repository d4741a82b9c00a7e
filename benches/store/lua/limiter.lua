-- The two-bucket limiter in Redis: one EVALSHA over a connection from a pool.
local settings = require 'settings'

local function bulk(text)
    return '$' .. #text .. '\r\n' .. text .. '\r\n'
end

-- What is the same in every call: the command in front of the keys, and what follows them.
local before = '*15\r\n' .. bulk('EVALSHA') .. bulk(settings.script) .. bulk('2')
local after = bulk('-') .. bulk('1')
for _ = 1, 2 do
    for _, number in ipairs(settings.numbers) do
        after = after .. bulk(number)
    end
end

-- The nonce and seven numbers: passed, the slowest bucket, how long it takes, then level and time to fill of each.
local function reply(socket)
    local head, fault = socket:receive()
    if head ~= '*8' then
        return nil, fault or head
    end
    socket:receive()
    socket:receive()
    local numbers = {}
    for i = 1, 7 do
        local line
        line, fault = socket:receive()
        if not line then
            return nil, fault
        end
        numbers[i] = tonumber(line:sub(2))
    end
    return numbers
end

local limiter = {}

function limiter.take(caller, route)
    local socket = ngx.socket.tcp()
    socket:settimeout(2000)
    local ok, fault = socket:connect(settings.host, settings.port)
    if not ok then
        return nil, fault
    end
    ok, fault = socket:send({before, bulk(caller), bulk(route), after})
    if not ok then
        return nil, fault
    end
    local numbers
    numbers, fault = reply(socket)
    if not numbers then
        socket:close()
        return nil, fault
    end
    socket:setkeepalive(60000, 128)
    return numbers
end

return limiter
