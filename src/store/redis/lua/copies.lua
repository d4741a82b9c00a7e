-- How many copies follow the store and are up to date, if it tells. ARGV: nonce.
local told = redis.pcall('INFO', 'replication')
if type(told) ~= 'string' or not string.find(told, 'role:', 1, true) then
    return {nonce, 'untold', 0}
end
local _, online = string.gsub(told, 'state=online', '')
return {nonce, 'online', online}
