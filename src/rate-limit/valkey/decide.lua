-- Takes over what a server knows of keys, and allows or rejects requests. This is the arithmetic of
-- src/domain/rate-limit.ts, with the same names, on one hash per API key. Tests run the same histories on both.
--
-- ARGV[3..] has three values for each of KEYS, in order; a key may occur more than once. Requests have the limits per
-- minute and per day, and their number. A KeyHandOver is a JSON array, with an empty text, and 0: the time of
-- the unban, and the numbers of `toStored`.
-- The reply is a text of numbers: the time, and twelve for each of KEYS: how many requests are allowed, how many are
-- limited, whether one led to a ban, and the quota. An array would take the client 1.7 µs more for each.
--
-- The fields m* of a hash are the window of the minute, d* that of the day: opened at, used, when the grace period
-- began, strikes. The fields ba and bu are the ban, in the form of `toStored`. An absent field has its initial value.
local NEVER = -1
local MINUTE_MS, DAY_MS = 60000, 86400000
local SAME_MS = 1000
-- Expiry only frees memory. Valkey expires keys by another clock, so the expiry is a little later than needed.
local EXPIRY_SLACK_MS = 1000

-- ARGV[1] is the time of a test's clock, or empty; ARGV[2] has the ban rules as JSON. With more than ten arguments, a
-- client without its password would get a protocol error instead of NOAUTH.
local now = tonumber(ARGV[1])
if not now then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local rules = cjson.decode(ARGV[2])

-- Whether more than the two counts has changed since the quota was loaded. Counts alone are cheaper to write.
local changed

local function window(length_ms, opened_at, used, grace_began_at, strikes)
  return {
    length_ms = length_ms,
    opened_at = tonumber(opened_at or 0),
    used = tonumber(used or 0),
    grace_began_at = tonumber(grace_began_at or NEVER),
    strikes = tonumber(strikes or 0),
  }
end

local function clear_strikes(window)
  window.grace_began_at = NEVER
  window.strikes = 0
end

local function clear_ban(quota)
  quota.banned_at = NEVER
  quota.banned_until = NEVER
  quota.last_ban_ms = 0
end

local function is_banned(quota)
  return quota.banned_at ~= NEVER and now < quota.banned_until
end

local function closes_at(window)
  return window.opened_at + window.length_ms
end

-- Returns when both windows are closed and the ban has been over for so long that it does not double the next one.
local function expires_at(quota)
  local last = quota.banned_until
  if last ~= NEVER then last = last + DAY_MS end
  if quota.minute.used > 0 then last = math.max(last, closes_at(quota.minute)) end
  if quota.day.used > 0 then last = math.max(last, closes_at(quota.day)) end
  return last
end

-- Ends or forgets a ban that began by `at`, and clears the strikes of windows that opened by then.
local function unban(quota, at)
  local began_at = quota.banned_at
  if began_at == NEVER then began_at = quota.banned_until - quota.last_ban_ms end
  if began_at <= at then clear_ban(quota) end
  if quota.minute.opened_at <= at then clear_strikes(quota.minute) end
  if quota.day.opened_at <= at then clear_strikes(quota.day) end
end

-- Returns the quota of the numbers of `toStored`; an absent one has its initial value.
local function from_stored(v)
  local quota = {
    minute = window(MINUTE_MS, v[1], v[2], v[3], v[4]),
    day = window(DAY_MS, v[5], v[6], v[7], v[8]),
  }
  local first, second = tonumber(v[9] or -1), tonumber(v[10] or -1)
  if second < 0 then
    quota.banned_at, quota.banned_until, quota.last_ban_ms = NEVER, first, -1 - second
  else
    quota.banned_at, quota.banned_until, quota.last_ban_ms = first, second, 0
  end
  return quota
end

local function load(key)
  local v = redis.call('HMGET', key, 'mo', 'mu', 'mr', 'ms', 'do', 'du', 'dr', 'ds', 'ba', 'bu')
  local quota = from_stored(v)
  -- This is nil for a new subject, so that its first save sets an expiry.
  quota.stored_expiry = v[1] and expires_at(quota)
  changed = false
  return quota
end

local function save(key, quota)
  local m, d = quota.minute, quota.day
  if not changed then
    redis.call('HSET', key, 'mu', m.used, 'du', d.used)
    return
  end
  local first, second = quota.banned_at, quota.banned_until
  if first == NEVER then first, second = quota.banned_until, -1 - quota.last_ban_ms end
  redis.call('HSET', key,
    'mo', m.opened_at, 'mu', m.used, 'mr', m.grace_began_at, 'ms', m.strikes,
    'do', d.opened_at, 'du', d.used, 'dr', d.grace_began_at, 'ds', d.strikes,
    'ba', first, 'bu', second)
  local expiry = expires_at(quota)
  if expiry ~= quota.stored_expiry then
    redis.call('PEXPIRE', key, math.max(0, expiry - now) + EXPIRY_SLACK_MS)
  end
end

local function expire_window(window)
  if window.opened_at > now then
    window.opened_at = now
    changed = true
  end
  if window.grace_began_at > now then
    window.grace_began_at = now
    changed = true
  end
  if now < closes_at(window) then return end
  if window.used == 0 and window.grace_began_at == NEVER then return end
  window.used = 0
  clear_strikes(window)
  changed = true
end

local function expire_ban(quota)
  local banned_at, banned_until = quota.banned_at, quota.banned_until
  if banned_until == NEVER then return end
  if banned_at ~= NEVER then
    local early_ms = math.max(0, banned_at - now)
    quota.banned_at = banned_at - early_ms
    quota.banned_until = math.min(banned_until - early_ms, quota.banned_at + rules.maxLengthMs)
    if not is_banned(quota) then
      quota.last_ban_ms = quota.banned_until - quota.banned_at
      quota.banned_at = NEVER
    end
  end
  if quota.banned_at == NEVER then
    quota.banned_until = math.min(quota.banned_until, now)
    if now >= quota.banned_until + DAY_MS then clear_ban(quota) end
  end
  if banned_at ~= quota.banned_at or banned_until ~= quota.banned_until then changed = true end
end

local function expire(quota)
  expire_window(quota.minute)
  expire_window(quota.day)
  expire_ban(quota)
end

local function count(window, requests)
  if window.used == 0 then
    window.opened_at = now
    changed = true
  end
  window.used = window.used + requests
end

-- Returns whether rejections at this time lead to a ban. At most one of them is a strike.
local function reject(window)
  local is_strike = window.grace_began_at ~= NEVER and now - window.grace_began_at > rules.graceMs
  if is_strike then window.strikes = window.strikes + 1 end
  if is_strike or window.grace_began_at == NEVER then
    window.grace_began_at = now
    changed = true
  end
  if window.strikes < rules.strikes then return false end
  window.strikes = 0
  return true
end

local function next_ban_ms(quota)
  return math.max(rules.lengthMs, math.min(2 * quota.last_ban_ms, rules.maxLengthMs))
end

-- Decides requests of a key that arrive together. Returns how many are allowed, how many of the others are limited, and
-- 1 if they led to a ban, otherwise 0. The rest are banned.
local function decide(quota, per_minute, per_day, requests)
  expire(quota)
  if is_banned(quota) then return 0, 0, 0 end

  local minute, day = quota.minute, quota.day
  local allowed = math.max(0, math.min(requests, per_minute - minute.used, per_day - day.used))
  if allowed > 0 then
    count(minute, allowed)
    count(day, allowed)
  end

  if allowed == requests then return allowed, 0, 0 end

  local minute_ends = minute.used >= per_minute and closes_at(minute) or NEVER
  local day_ends = day.used >= per_day and closes_at(day) or NEVER
  if reject(day_ends >= minute_ends and day or minute) then
    quota.banned_until = now + next_ban_ms(quota)
    quota.banned_at = now
    quota.last_ban_ms = 0
    changed = true
    return allowed, 0, 1
  end
  return allowed, requests - allowed, 0
end

local function merge_window(window, known)
  if known.used == 0 then return end
  local later_by_ms = known.opened_at - window.opened_at
  if window.used == 0 or later_by_ms >= window.length_ms - SAME_MS then
    window.opened_at, window.used = known.opened_at, known.used
    window.grace_began_at, window.strikes = known.grace_began_at, known.strikes
  elseif later_by_ms > SAME_MS - window.length_ms then
    window.opened_at = math.min(window.opened_at, known.opened_at)
    window.used = math.max(window.used, known.used)
    window.grace_began_at = math.max(window.grace_began_at, known.grace_began_at)
    window.strikes = math.max(window.strikes, known.strikes)
  end
end

-- Takes of each window the larger count, the later ban, and the strikes since then.
local function merge(quota, known)
  local later_by_ms = known.banned_until - quota.banned_until
  local earlier = later_by_ms > SAME_MS and quota or later_by_ms < -SAME_MS and known or nil
  if earlier then
    clear_strikes(earlier.minute)
    clear_strikes(earlier.day)
  end
  if earlier == quota then
    quota.banned_at, quota.banned_until = known.banned_at, known.banned_until
    quota.last_ban_ms = known.last_ban_ms
  end
  merge_window(quota.minute, known.minute)
  merge_window(quota.day, known.day)
end

local function take_over(quota, handed)
  local known = from_stored({ unpack(handed, 2) })
  expire(quota)
  expire(known)
  if handed[1] ~= NEVER then unban(quota, handed[1]) end
  merge(quota, known)
  changed = true
  return 0, 0, 0
end

local replies = { now }
local function add_reply(quota, allowed, limited, bans)
  local length = #replies
  replies[length + 1] = allowed
  replies[length + 2] = limited
  replies[length + 3] = bans
  replies[length + 4] = quota.minute.opened_at
  replies[length + 5] = quota.minute.used
  replies[length + 6] = quota.minute.strikes
  replies[length + 7] = quota.day.opened_at
  replies[length + 8] = quota.day.used
  replies[length + 9] = quota.day.strikes
  replies[length + 10] = quota.banned_at
  replies[length + 11] = quota.banned_until
  replies[length + 12] = quota.last_ban_ms
end

for i, key in ipairs(KEYS) do
  local quota = load(key)
  local used = quota.day.used
  local requests = tonumber(ARGV[3 * i + 2])
  if requests == 0 then
    add_reply(quota, take_over(quota, cjson.decode(ARGV[3 * i])))
  else
    add_reply(quota, decide(quota, tonumber(ARGV[3 * i]), tonumber(ARGV[3 * i + 1]), requests))
  end
  if (changed or quota.day.used ~= used) and (quota.stored_expiry or expires_at(quota) ~= NEVER) then
    save(key, quota)
  end
end
return table.concat(replies, ',')
