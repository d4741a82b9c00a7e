-- Keeps an answer. KEYS: answer. ARGV: nonce, stored, fresh, expires, meta, body.
keep(KEYS[1], unpack(ARGV, 2, 6))
return {nonce}
