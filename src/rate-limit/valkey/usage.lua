-- Stands before each of the other scripts: the arithmetic of src/domain/rate-limit.ts, name for name, on one hash per
-- API key. Tests take both through the same histories.
--
-- Fields of a hash: m* is the window of the minute, d* that of the day: opened at, used, first rejected at, strikes;
-- ba and bu are the two numbers of a ban, as in src/domain/rate-limit.ts. An absent field has its initial value.
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

-- Ends or forgets a ban that began at or before a time, and clears the strikes of windows that first rejected by then.
local function unban(usage, at)
  if usage.banned_at - last_ban_ms(usage) <= at then clear_ban(usage) end
  if usage.minute.first_rejected_at <= at then clear_strikes(usage.minute) end
  if usage.day.first_rejected_at <= at then clear_strikes(usage.day) end
end

-- Six numbers: when each window opened and what it counts, and the two numbers of the ban.
local function add_state(replies, usage)
  local length = #replies
  replies[length + 1] = usage.minute.opened_at
  replies[length + 2] = usage.minute.used
  replies[length + 3] = usage.day.opened_at
  replies[length + 4] = usage.day.used
  replies[length + 5] = usage.banned_at
  replies[length + 6] = usage.banned_until
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
