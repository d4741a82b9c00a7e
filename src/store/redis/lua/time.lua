-- The store's own clock, in microseconds: one time for all instances. Numbers are exact up to 2^53, until the year 2255.
local now
do
    local time = redis.call('TIME')
    now = time[1] * 1000000 + time[2]
end
