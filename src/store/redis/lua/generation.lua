-- A route's purge generation. KEYS: generations. ARGV: nonce, route.
return {nonce, redis.call('HGET', KEYS[1], ARGV[2]) or '0'}
