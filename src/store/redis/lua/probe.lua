-- A real operation, to learn whether the store works: it writes. KEYS: the probe.
redis.call('SET', KEYS[1], int(now), 'PX', '60000')
return {nonce, now}
