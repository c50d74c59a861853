-- Lifts the ban of KEYS[1] if it began at or before ARGV[5], and forgives strikes from before.
local key, at = KEYS[1], tonumber(ARGV[5])
if redis.call('EXISTS', key) == 0 then return 0 end

local standing = load(key)
settle(standing, rules_of(key))
if standing.banned_at <= at then lift_ban(standing) end
if standing.minute.refused_at <= at then forgive_strikes(standing.minute) end
if standing.day.refused_at <= at then forgive_strikes(standing.day) end
changed = true
save(key, standing)
return 1
