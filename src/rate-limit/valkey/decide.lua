-- Allows or rejects some requests of each of KEYS, in order; a subject may occur more than once.
-- ARGV[3..] has three numbers for each key: its limits per minute and per day, and how many requests.
-- Replies a text of numbers: the time, and seven for each request, the outcome and the usage. An array takes the client
-- 1.7 µs more for each request. NEW_BAN: this request led to the ban.
local ALLOWED, LIMITED, BANNED, NEW_BAN = 0, 1, 2, 3

local function count(window)
  if window.used == 0 then
    window.opened_at = now
    changed = true
  end
  window.used = window.used + 1
end

-- Whether the rejection leads to a ban.
local function reject(window)
  if window.first_rejected_at == NEVER then
    window.first_rejected_at = now
    changed = true
  elseif now - window.first_rejected_at > rules.graceMs then
    window.strikes = window.strikes + 1
    changed = true
  end
  if window.strikes < rules.strikes then return false end
  window.strikes = 0
  return true
end

local function next_ban_ms(usage)
  return math.max(rules.lengthMs, math.min(2 * last_ban_ms(usage), rules.maxLengthMs))
end

local function decide(usage, per_minute, per_day)
  expire(usage)
  if now < usage.banned_until then return BANNED end

  local minute, day = usage.minute, usage.day
  local minute_exhausted, day_exhausted = minute.used >= per_minute, day.used >= per_day
  if not minute_exhausted and not day_exhausted then
    count(minute)
    count(day)
    return ALLOWED
  end

  local minute_ends = minute_exhausted and closes_at(minute) or NEVER
  local day_ends = day_exhausted and closes_at(day) or NEVER
  if not reject(day_ends >= minute_ends and day or minute) then return LIMITED end
  usage.banned_until = now + next_ban_ms(usage)
  usage.banned_at = now
  changed = true
  return NEW_BAN
end

local replies = { now }
for i, key in ipairs(KEYS) do
  local usage = load(key)
  local used = usage.day.used
  local per_minute, per_day = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  for _ = 1, tonumber(ARGV[3 * i + 2]) do
    replies[#replies + 1] = decide(usage, per_minute, per_day)
    add_state(replies, usage)
  end
  if changed or usage.day.used ~= used then save(key, usage) end
end
return table.concat(replies, ',')
