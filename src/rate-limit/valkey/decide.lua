-- Adds reports of a server to the usage of keys, and allows or rejects requests: the arithmetic of
-- src/domain/rate-limit.ts, name for name, on one hash per API key. Tests take both through the same histories.
--
-- ARGV[3..] has three values for each of KEYS, in order; a key may occur more than once. For requests: its limits per
-- minute and per day, and how many. For a report: a JSON array of its numbers, an empty text, and 0.
-- Replies a text of numbers: the time, and seven for each request or report, the outcome and the usage. An array takes
-- the client 1.7 µs more for each request. NEW_BAN: this request led to the ban.
--
-- Fields of a hash: m* is the window of the minute, d* that of the day: opened at, used, first rejected at, strikes;
-- ba and bu are the two numbers of a ban. An absent field has its initial value.
local ALLOWED, LIMITED, BANNED, NEW_BAN = 0, 1, 2, 3
local NEVER = -1
local MINUTE_MS, DAY_MS = 60000, 86400000
-- Expiry only frees memory. It follows a clock of its own, so it comes a little late on purpose.
local EXPIRY_SLACK_MS = 1000

-- ARGV[1] is the clock of a test, or empty; ARGV[2] has the ban rules as JSON. More than ten arguments in all would get
-- a client without its password an error of the protocol, instead of NOAUTH.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local rules = cjson.decode(ARGV[2])

-- Whether anything but the two counts has changed since the usage was loaded: counts alone are cheaper to write.
local changed

local function window(length_ms, opened_at, used, first_rejected_at, strikes)
  return {
    length_ms = length_ms,
    opened_at = tonumber(opened_at or 0),
    used = tonumber(used or 0),
    first_rejected_at = tonumber(first_rejected_at or NEVER),
    strikes = tonumber(strikes or 0),
  }
end

local function clear_strikes(window)
  window.first_rejected_at = NEVER
  window.strikes = 0
end

local function clear_ban(usage)
  usage.banned_at = NEVER
  usage.banned_until = NEVER
end

-- The length of the last ban, or 0.
local function last_ban_ms(usage)
  return math.max(0, NEVER - usage.banned_until)
end

-- When the current ban ends, or when the last one ended, or NEVER.
local function ban_ends_at(usage)
  return math.max(usage.banned_at, usage.banned_until)
end

local function closes_at(window)
  return window.opened_at + window.length_ms
end

-- When both windows are closed, and the ban has been over for so long that it makes the next one no longer.
local function expires_at(usage)
  local last = ban_ends_at(usage)
  if last ~= NEVER then last = last + DAY_MS end
  if usage.minute.used > 0 then last = math.max(last, closes_at(usage.minute)) end
  if usage.day.used > 0 then last = math.max(last, closes_at(usage.day)) end
  return last
end

-- Ends or forgets a ban that began by a time, and clears the strikes of windows that first rejected by then.
local function unban(usage, at)
  if usage.banned_at - last_ban_ms(usage) <= at then clear_ban(usage) end
  if usage.minute.first_rejected_at <= at then clear_strikes(usage.minute) end
  if usage.day.first_rejected_at <= at then clear_strikes(usage.day) end
end

local function load(key)
  local v = redis.call('HMGET', key, 'mo', 'mu', 'mr', 'ms', 'do', 'du', 'dr', 'ds', 'ba', 'bu')
  local usage = {
    minute = window(MINUTE_MS, v[1], v[2], v[3], v[4]),
    day = window(DAY_MS, v[5], v[6], v[7], v[8]),
    banned_at = tonumber(v[9] or NEVER),
    banned_until = tonumber(v[10] or NEVER),
  }
  -- Nil for a new subject, so that its first save sets an expiry.
  usage.stored_expiry = v[1] and expires_at(usage)
  changed = false
  return usage
end

local function save(key, usage)
  local m, d = usage.minute, usage.day
  if not changed then
    redis.call('HSET', key, 'mu', m.used, 'du', d.used)
    return
  end
  redis.call('HSET', key,
    'mo', m.opened_at, 'mu', m.used, 'mr', m.first_rejected_at, 'ms', m.strikes,
    'do', d.opened_at, 'du', d.used, 'dr', d.first_rejected_at, 'ds', d.strikes,
    'ba', usage.banned_at, 'bu', usage.banned_until)
  local expiry = expires_at(usage)
  if expiry ~= usage.stored_expiry then
    redis.call('PEXPIRE', key, math.max(0, expiry - now) + EXPIRY_SLACK_MS)
  end
end

local function expire_window(window)
  if window.opened_at > now then
    window.opened_at = now
    changed = true
  end
  if window.first_rejected_at > now then
    window.first_rejected_at = now
    changed = true
  end
  if now < closes_at(window) then return end
  if window.used == 0 and window.first_rejected_at == NEVER then return end
  window.used = 0
  clear_strikes(window)
  changed = true
end

local function expire_ban(usage)
  if usage.banned_at == NEVER then return end
  local early_ms = math.max(0, usage.banned_at - now)
  local banned_at, banned_until = usage.banned_at - early_ms, usage.banned_until
  if banned_until > NEVER then
    banned_until = math.min(banned_until - early_ms, banned_at + rules.maxLengthMs)
    if now >= banned_until then
      banned_at, banned_until = banned_until, NEVER - (banned_until - banned_at)
    end
  end
  if banned_until < NEVER and now >= banned_at + DAY_MS then
    banned_at, banned_until = NEVER, NEVER
  end
  if banned_at ~= usage.banned_at or banned_until ~= usage.banned_until then changed = true end
  usage.banned_at, usage.banned_until = banned_at, banned_until
end

local function expire(usage)
  expire_window(usage.minute)
  expire_window(usage.day)
  expire_ban(usage)
end

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

local function add_window(window, opened_at, used)
  if used == 0 or opened_at + window.length_ms <= now then return end
  window.opened_at = window.used == 0 and opened_at or math.min(window.opened_at, opened_at)
  window.used = window.used + used
end

local function add_ban(usage, banned_at, banned_until)
  if banned_until <= ban_ends_at(usage) then return end
  usage.banned_at = banned_at
  usage.banned_until = banned_until
end

-- When each window opened and what it counted, the two numbers of a ban, when the key was unbanned, when the report was
-- made by the clock of the server, and the same by this clock; NEVER for none.
local function add_report(usage, report)
  expire(usage)
  local by_ms = (report[9] == NEVER and now or math.min(now, report[9])) - report[8]
  if report[7] ~= NEVER then unban(usage, report[7] + by_ms) end
  add_window(usage.minute, report[1] + by_ms, report[2])
  add_window(usage.day, report[3] + by_ms, report[4])
  if report[5] ~= NEVER then add_ban(usage, report[5] + by_ms, report[6] + by_ms) end
  expire(usage)
  changed = true
end

local replies = { now }
local function add_reply(outcome, usage)
  local length = #replies
  replies[length + 1] = outcome
  replies[length + 2] = usage.minute.opened_at
  replies[length + 3] = usage.minute.used
  replies[length + 4] = usage.day.opened_at
  replies[length + 5] = usage.day.used
  replies[length + 6] = usage.banned_at
  replies[length + 7] = usage.banned_until
end

for i, key in ipairs(KEYS) do
  local usage = load(key)
  local used = usage.day.used
  local count = tonumber(ARGV[3 * i + 2])
  if count == 0 then
    add_report(usage, cjson.decode(ARGV[3 * i]))
    add_reply(ALLOWED, usage)
  end
  local per_minute, per_day = tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1])
  for _ = 1, count do
    add_reply(decide(usage, per_minute, per_day), usage)
  end
  if (changed or usage.day.used ~= used) and (usage.stored_expiry or expires_at(usage) ~= NEVER) then
    save(key, usage)
  end
end
return table.concat(replies, ',')
