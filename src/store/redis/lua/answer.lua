-- The answer that is kept. KEYS: answer. ARGV: nonce.
local kept = fields(KEYS[1], 'meta', 'body')
return {nonce, now, kept[1] or '', kept[2] or ''}
