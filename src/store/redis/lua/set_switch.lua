-- Sets a switch. Its revision is the number of the change. KEYS: switches, seq, log. ARGV: nonce, channel of changes, name,
-- switch.
local revision = tell(KEYS[2], KEYS[3], ARGV[2], pack('switch', ARGV[3], ARGV[4]))
redis.call('HSET', KEYS[1], ARGV[3], pack(int(revision), ARGV[4]))
return {nonce, revision}
