-- Goes in front of each of the other scripts: the arithmetic of src/domain/limits.ts, name for name, on one hash per
-- subject. The two are held together by tests that take both through the same histories.
--
-- Fields of a hash: m* is the minute's window, d* the day's: opened at, used, first refused at, strikes;
-- ba and bu are when the ban began and ends. A field that is absent has its initial value.
local NEVER = -1
local MINUTE_MS, DAY_MS = 60000, 86400000
-- Expiry collects garbage and decides nothing. It keeps a clock of its own, so it comes a little late on purpose.
local EXPIRY_SLACK_MS = 1000

-- ARGV[1] is the clock of a test, or empty; ARGV[2..4] are the rules of bans.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local rules = { strikes = tonumber(ARGV[2]), grace_ms = tonumber(ARGV[3]), length_ms = tonumber(ARGV[4]) }

-- Whether anything but the two counts has changed since the usage was loaded: counts alone are cheaper to write.
local changed

-- Only keys can be banned: an address may stand for many who did nothing.
local function rules_of(key)
  return string.find(key, '{key:', 1, true) and rules
end

local function window(length_ms, opened_at, used, refused_at, strikes)
  return {
    length_ms = length_ms,
    opened_at = tonumber(opened_at or 0),
    used = tonumber(used or 0),
    refused_at = tonumber(refused_at or NEVER),
    strikes = tonumber(strikes or 0),
  }
end

local function forgive_strikes(window)
  window.refused_at = NEVER
  window.strikes = 0
end

local function lift_ban(usage)
  usage.banned_at = NEVER
  usage.banned_until = NEVER
end

local function closing(window)
  return window.opened_at + window.length_ms
end

-- When the last of what the usage holds is over.
local function end_of(usage)
  local last = usage.banned_until
  if usage.minute.used > 0 then last = math.max(last, closing(usage.minute)) end
  if usage.day.used > 0 then last = math.max(last, closing(usage.day)) end
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
  -- Unknown for a newcomer, so that whatever is written of one is given an expiry.
  usage.expected_end = v[1] and end_of(usage)
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
    'mo', m.opened_at, 'mu', m.used, 'mr', m.refused_at, 'ms', m.strikes,
    'do', d.opened_at, 'du', d.used, 'dr', d.refused_at, 'ds', d.strikes,
    'ba', usage.banned_at, 'bu', usage.banned_until)
  local last = end_of(usage)
  if last ~= usage.expected_end then redis.call('PEXPIRE', key, math.max(0, last - now) + EXPIRY_SLACK_MS) end
end

local function settle_window(window)
  if window.opened_at > now then
    window.opened_at = now
    changed = true
  end
  if window.refused_at > now then
    window.refused_at = now
    changed = true
  end
  if now < closing(window) then return end
  if window.used == 0 and window.refused_at == NEVER then return end
  window.used = 0
  forgive_strikes(window)
  changed = true
end

local function settle(usage, rules)
  settle_window(usage.minute)
  settle_window(usage.day)
  if usage.banned_until == NEVER then return end
  local banned_at, banned_until = usage.banned_at, usage.banned_until
  if banned_at > now then
    usage.banned_until = banned_until - (banned_at - now)
    usage.banned_at = now
  end
  if rules then usage.banned_until = math.min(usage.banned_until, usage.banned_at + rules.length_ms) end
  if now >= usage.banned_until then lift_ban(usage) end
  if usage.banned_until ~= banned_until then changed = true end
end
