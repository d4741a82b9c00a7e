-- Tells all instances that an answer was purged. KEYS: seq, log. ARGV: nonce, channel of changes, route, digest, instance.
tell(KEYS[1], KEYS[2], ARGV[2], pack('purged', ARGV[3], ARGV[4], ARGV[5]))
return {nonce}
