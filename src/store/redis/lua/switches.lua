-- All switches. KEYS: switches. ARGV: nonce.
return {nonce, redis.call('HGETALL', KEYS[1])}
