-- Reads the usage of KEYS[1] and counts nothing. Replies ten numbers in the order of the fields, or none once all of it
-- has expired.
local usage = load(KEYS[1])
expire(usage)
if expires_at(usage) == NEVER then return {} end
local m, d = usage.minute, usage.day
return {
  m.opened_at, m.used, m.first_rejected_at, m.strikes,
  d.opened_at, d.used, d.first_rejected_at, d.strikes,
  stored_ban(usage)
}
