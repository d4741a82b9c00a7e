-- What is known about a subject. KEYS: subject. ARGV: nonce, window.
local found = subject(KEYS[1], tonumber(ARGV[2]))
return {nonce, found.misses, found.in_flight, locked(found) or -1, found.lock and found.lock.number or 0}
