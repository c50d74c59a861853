-- Adds to the usage of each of KEYS, in order, what a server decided without it; a key occurs once.
-- ARGV[3] is a JSON array with an array for each key: how long ago its minute opened and how many requests it counted,
-- the same of its day, how long ago a ban began and its length, how long ago the key was unbanned, and when this was
-- so; NEVER for none. Replies the time, and six numbers for each key.
local function add_window(window, opened_at, used)
  if used == 0 or opened_at + window.length_ms <= now then return end
  window.opened_at = window.used == 0 and opened_at or math.min(window.opened_at, opened_at)
  window.used = window.used + used
end

local function add_ban(usage, banned_at, length_ms)
  local banned_until = banned_at + length_ms
  if banned_until <= ban_ends_at(usage) then return end
  usage.banned_at = banned_at
  usage.banned_until = banned_until
end

local replies = { now }
for i, report in ipairs(cjson.decode(ARGV[3])) do
  local usage = load(KEYS[i])
  local exists = usage.stored_expiry
  expire(usage)
  local sent_at = report[8] == NEVER and now or math.min(now, report[8])
  if report[7] ~= NEVER then unban(usage, sent_at - report[7]) end
  add_window(usage.minute, sent_at - report[1], report[2])
  add_window(usage.day, sent_at - report[3], report[4])
  if report[5] ~= NEVER then add_ban(usage, sent_at - report[5], report[6]) end
  expire(usage)
  changed = true
  if exists or expires_at(usage) ~= NEVER then save(KEYS[i], usage) end
  add_state(replies, usage)
end
return replies
