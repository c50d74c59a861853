-- Where KEYS[1] stands, without charging it: ten numbers in the order of the fields, or none if all of it is over.
local standing = load(KEYS[1])
settle(standing, rules_of(KEYS[1]))
if end_of(standing) == NEVER then return {} end
local m, d = standing.minute, standing.day
return {
  m.opened_at, m.used, m.refused_at, m.strikes,
  d.opened_at, d.used, d.refused_at, d.strikes,
  standing.banned_at, standing.banned_until,
}
