-- What is being sent or unknown, the oldest first: so many of the index, from a place in it on. Says at how many it has looked.
-- KEYS: unsettled. ARGV: nonce, what the names of records begin with, place, how many.
local shown = {}
local ids = redis.call('ZRANGE', KEYS[1], ARGV[3], int(tonumber(ARGV[3]) + tonumber(ARGV[4]) - 1))
for _, id in ipairs(ids) do
    local found, unreadable = record(ARGV[2] .. id, KEYS[1], id)
    if unreadable then
        return {nonce, 'broken'}
    end
    local state = found and standing(found)
    if state == 'sending' or state == 'unknown' then
        shown[#shown + 1] = {
            id, found.owner, found.since, state == 'unknown' and 1 or 0, settle_from(found), found.about,
        }
    end
end
return {nonce, 'unsettled', #ids, shown}
