-- Reads the usage of KEYS[1] and counts nothing. Replies ten numbers in the order of the fields, or none once all of it
-- has expired. If ARGV[3] is given, a JSON array of such numbers, they replace the usage first.
if ARGV[3] then
  local n = cjson.decode(ARGV[3])
  local usage = {
    minute = window(MINUTE_MS, n[1], n[2], n[3], n[4]),
    day = window(DAY_MS, n[5], n[6], n[7], n[8]),
    banned_at = n[9],
    banned_until = n[10],
  }
  expire(usage)
  redis.call('UNLINK', KEYS[1])
  changed = true
  if expires_at(usage) ~= NEVER then save(KEYS[1], usage) end
end

local usage = load(KEYS[1])
expire(usage)
if expires_at(usage) == NEVER then return {} end
local m, d = usage.minute, usage.day
return {
  m.opened_at, m.used, m.first_rejected_at, m.strikes,
  d.opened_at, d.used, d.first_rejected_at, d.strikes,
  usage.banned_at, usage.banned_until
}
