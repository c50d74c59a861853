-- Stands before each of the other scripts: the arithmetic of src/domain/rate-limit.ts, name for name, on one hash per
-- API key. Tests take both through the same histories.
--
-- Fields of a hash: m* is the window of the minute, d* that of the day: opened at, used, first rejected at, strikes;
-- ba and bu are when the ban began and ends. An absent field has its initial value.
local NEVER = -1
local MINUTE_MS, DAY_MS = 60000, 86400000
-- Expiry only frees memory. It follows a clock of its own, so it comes a little late on purpose.
local EXPIRY_SLACK_MS = 1000

-- ARGV[1] is the clock of a test, or empty; ARGV[2..4] are the ban rules.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local rules = { strikes = tonumber(ARGV[2]), grace_ms = tonumber(ARGV[3]), length_ms = tonumber(ARGV[4]) }

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

local function closes_at(window)
  return window.opened_at + window.length_ms
end

-- When both windows and the ban are over.
local function expires_at(usage)
  local last = usage.banned_until
  if usage.minute.used > 0 then last = math.max(last, closes_at(usage.minute)) end
  if usage.day.used > 0 then last = math.max(last, closes_at(usage.day)) end
  return last
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

local function expire(usage)
  expire_window(usage.minute)
  expire_window(usage.day)
  if usage.banned_until == NEVER then return end
  local banned_at, banned_until = usage.banned_at, usage.banned_until
  if banned_at > now then
    usage.banned_until = banned_until - (banned_at - now)
    usage.banned_at = now
  end
  usage.banned_until = math.min(usage.banned_until, usage.banned_at + rules.length_ms)
  if now >= usage.banned_until then clear_ban(usage) end
  if usage.banned_until ~= banned_until then changed = true end
end
