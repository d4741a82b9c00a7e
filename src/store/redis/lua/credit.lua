-- Adds what was saved to the days' sums, once.
-- KEYS: epoch, the operation, days, then the day's sums of each saving. ARGV: nonce, epoch, then of each: day, kind, how many,
-- micros.
if not unbroken(KEYS[1], ARGV[2]) then
    return {nonce, 'lost'}
end
if redis.call('EXISTS', KEYS[2]) == 1 then
    return {nonce, 'credited'}
end
redis.call('EXISTS', KEYS[3])
for i = 4, #KEYS do
    if not has_room(KEYS[i], ARGV[4 * i - 12], tonumber(ARGV[4 * i - 11]), tonumber(ARGV[4 * i - 10])) then
        return {nonce, 'much'}
    end
end
redis.call('SET', KEYS[2], '1', 'PX', milliseconds(OVER))
for i = 4, #KEYS do
    local day, kind, count, micros = unpack(ARGV, 4 * i - 13, 4 * i - 10)
    note_day(KEYS[3], day)
    add_to(KEYS[i], kind, tonumber(count), tonumber(micros))
end
return {nonce, 'credited'}
