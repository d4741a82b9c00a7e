-- Keeps the answer unless it was purged meanwhile, gives the lease back, leaves word to those who wait, and tells them.
-- KEYS: answer, lease, landed, purged. ARGV: nonce, flight, when it began, what it leaves (nothing, kept, word, alone), the
-- word (or for how long alone), channel of landings, digest, what becomes of the answer (none, keep, carry), and the answer.
-- To carry it: where there is no room to keep it, those who wait get it all the same.
local answer, lease, landed, purged = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local flight, began, leaves, word, answers = ARGV[2], tonumber(ARGV[3]), ARGV[4], ARGV[5], ARGV[8]

local mark = tonumber(redis.call('GET', purged))
local gone = mark ~= nil and mark >= began
if gone and leaves == 'kept' then
    leaves = 'nothing'
end
if answers == 'keep' and not gone then
    keep(answer, unpack(ARGV, 9, 13))
end

local holder, waited = unpack(fields(lease, 'flight', 'waited'))
if holder == flight then
    redis.call('DEL', lease)
    if leaves == 'alone' or waited then
        redis.call('DEL', landed)
        redis.call('HSET', landed, 'at', int(now), 'left', leaves)
        if leaves == 'alone' then
            redis.call('HSET', landed, 'until', int(now + tonumber(word)))
            live(landed, tonumber(word))
        else
            if leaves == 'word' then
                redis.call('HSET', landed, 'word', word)
            elseif answers == 'carry' then
                redis.call('HSET', landed, 'meta', ARGV[12], 'body', ARGV[13])
            end
            redis.call('PEXPIRE', landed, '10000')
        end
    end
    if waited then
        redis.call('PUBLISH', ARGV[6], ARGV[7])
    end
end
return {nonce, gone and 0 or 1}
