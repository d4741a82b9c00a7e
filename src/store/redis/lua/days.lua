-- The days of which there are sums, from the first to the last. KEYS: epoch, days. ARGV: nonce, epoch, first, last.
if not unbroken(KEYS[1], ARGV[2]) then
    return {nonce, 'lost'}
end
return {nonce, 'days', redis.call('ZRANGEBYLEX', KEYS[2], '[' .. ARGV[3], '[' .. ARGV[4])}
