-- Lifts the ban of KEYS[1] if it began at or before ARGV[5], and forgives strikes from before.
local key, at = KEYS[1], tonumber(ARGV[5])
if redis.call('EXISTS', key) == 0 then return 0 end

local usage = load(key)
settle(usage, rules_of(key))
if usage.banned_at <= at then lift_ban(usage) end
if usage.minute.refused_at <= at then forgive_strikes(usage.minute) end
if usage.day.refused_at <= at then forgive_strikes(usage.day) end
changed = true
save(key, usage)
return 1
