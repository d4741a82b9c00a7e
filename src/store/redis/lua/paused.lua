-- Until when a provider is paused. KEYS: pauses. ARGV: nonce, provider.
local ends = fields(KEYS[1], ARGV[2])[1]
return {nonce, tonumber(ends) and tonumber(ends) > now and ends or '0'}
