-- Where KEYS[1] stands, without charging it: ten numbers in the order of the fields, or none if all of it is over.
local usage = load(KEYS[1])
settle(usage, rules_of(KEYS[1]))
if end_of(usage) == NEVER then return {} end
local m, d = usage.minute, usage.day
return {
  m.opened_at, m.used, m.refused_at, m.strikes,
  d.opened_at, d.used, d.refused_at, d.strikes,
  usage.banned_at, usage.banned_until,
}
