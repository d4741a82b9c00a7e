-- The way of a request: who asks, what is asked, may they, what is known.
local ffi = require 'ffi'
local limiter = require 'limiter'
local settings = require 'settings'

-- OpenSSL's; nginx is linked with it.
ffi.cdef 'unsigned char *SHA256(const unsigned char *text, size_t length, unsigned char *digest);'
local digest = ffi.new('unsigned char[32]')

local callers = {}
for hash, name in pairs(settings.callers) do
    callers[hash:gsub('..', function(hex) return string.char(tonumber(hex, 16)) end)] = name
end

local function caller()
    local key = ngx.var.http_x_api_key
    if not key then
        return nil
    end
    ffi.C.SHA256(key, #key, digest)
    return callers[ffi.string(digest, 32)]
end

-- One spelling for equal questions: trimmed, in lower case, spaces collapsed, parameters sorted.
local function canonical()
    local arguments, names = ngx.req.get_uri_args(), {}
    for name in pairs(arguments) do
        names[#names + 1] = name
    end
    table.sort(names)
    local parts = {ngx.var.uri}
    for _, name in ipairs(names) do
        local value = arguments[name]
        if type(value) ~= 'string' then
            return nil
        end
        value = value:lower():gsub('%s+', ' '):gsub('^ ', ''):gsub(' $', '')
        parts[#parts + 1] = name .. '=' .. value
    end
    return table.concat(parts, '\n')
end

local function paid(question)
    local answer = ngx.location.capture('/paid', {args = ngx.var.args})
    if answer.status ~= 200 then
        return nil
    end
    ngx.shared.answers:set(question, answer.body, 30 * 86400)
    return answer.body
end

local hit = {}

function hit.answer()
    local who = caller()
    if not who then
        return ngx.exit(401)
    end
    local question = canonical()
    if not question then
        return ngx.exit(400)
    end
    local numbers, fault = limiter.take('nginx:bucket:{bucket}:geocode:' .. who, 'nginx:bucket:{bucket}:geocode')
    if not numbers then
        ngx.log(ngx.ERR, 'the limits cannot be read: ', fault)
        return ngx.exit(503)
    elseif numbers[1] == 0 then
        return ngx.exit(429)
    end
    local body = ngx.shared.answers:get(question) or paid(question)
    if not body then
        return ngx.exit(502)
    end
    ngx.header['Content-Type'] = 'application/json'
    ngx.header['Content-Length'] = #body
    ngx.header['RateLimit'] = '"caller";r=' .. math.floor(numbers[4] / 1e6) .. ';t=' .. math.ceil(numbers[5] / 1e6)
    ngx.print(body)
end

return hit
