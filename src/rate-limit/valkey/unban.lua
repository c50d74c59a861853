-- Ends the ban of KEYS[1] if it began at least ARGV[3] milliseconds ago, forgets the last one if it began by then, and
-- clears the strikes of windows that first rejected by then.
local key, at = KEYS[1], now - tonumber(ARGV[3])
if redis.call('EXISTS', key) == 0 then return 0 end

local usage = load(key)
expire(usage)
if usage.banned_at <= at then clear_ban(usage) end
if usage.last_ban_ended_at - usage.last_ban_ms <= at then clear_last_ban(usage) end
if usage.minute.first_rejected_at <= at then clear_strikes(usage.minute) end
if usage.day.first_rejected_at <= at then clear_strikes(usage.day) end
changed = true
save(key, usage)
return 1
