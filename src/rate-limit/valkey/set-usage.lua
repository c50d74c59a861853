-- Replaces the usage of KEYS[1] by the ten numbers in ARGV[3], a JSON array in the order of the fields, unless all of it
-- has expired. Replies the numbers that are stored, or none.
local n = cjson.decode(ARGV[3])
local usage = {
  minute = window(MINUTE_MS, n[1], n[2], n[3], n[4]),
  day = window(DAY_MS, n[5], n[6], n[7], n[8]),
}
set_ban(usage, n[9], n[10])
expire(usage)
redis.call('UNLINK', KEYS[1])
if expires_at(usage) == NEVER then return {} end
changed = true
save(KEYS[1], usage)
usage = load(KEYS[1])
local m, d = usage.minute, usage.day
return {
  m.opened_at, m.used, m.first_rejected_at, m.strikes,
  d.opened_at, d.used, d.first_rejected_at, d.strikes,
  stored_ban(usage)
}
