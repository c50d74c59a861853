-- Allows or rejects one request of each of KEYS, in order; a subject may occur more than once.
-- ARGV[3..] are the limits, two for each key: per minute and per day.
-- Replies five numbers for each: outcome, limit, remaining, when the window resets and how long to wait (milliseconds).
-- A banned key has no requests remaining; its third number is when the ban began. NEW_BAN: this request led to the ban.
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

local function remaining_in(window, limit)
  return math.max(0, limit - window.used)
end

local replies = {}
local length = 0
local function reply(outcome, limit, remaining, reset_at, wait_ms)
  replies[length + 1] = outcome
  replies[length + 2] = limit
  replies[length + 3] = remaining
  replies[length + 4] = reset_at
  replies[length + 5] = wait_ms
  length = length + 5
end

-- Describes the window with the fewest requests remaining; on a tie, the longer one.
local function reply_decision(outcome, usage, limits, wait_ms)
  local minute, day = usage.minute, usage.day
  local minute_remaining = remaining_in(minute, limits.per_minute)
  local day_remaining = remaining_in(day, limits.per_day)
  if minute_remaining < day_remaining then
    return reply(outcome, limits.per_minute, minute_remaining, closes_at(minute), wait_ms)
  end
  return reply(outcome, limits.per_day, day_remaining, closes_at(day), wait_ms)
end

local function reply_banned(outcome, usage, limits)
  local minute_is_tighter =
    remaining_in(usage.minute, limits.per_minute) < remaining_in(usage.day, limits.per_day)
  local limit = minute_is_tighter and limits.per_minute or limits.per_day
  return reply(outcome, limit, usage.banned_at, usage.banned_until, usage.banned_until - now)
end

local function next_ban_ms(usage)
  return math.max(rules.lengthMs, math.min(2 * usage.last_ban_ms, rules.maxLengthMs))
end

local function decide(usage, limits)
  expire(usage)
  if now < usage.banned_until then return reply_banned(BANNED, usage, limits) end

  local minute, day = usage.minute, usage.day
  local minute_exhausted, day_exhausted = minute.used >= limits.per_minute, day.used >= limits.per_day
  if not minute_exhausted and not day_exhausted then
    count(minute)
    count(day)
    return reply_decision(ALLOWED, usage, limits, 0)
  end

  local minute_ends = minute_exhausted and closes_at(minute) or NEVER
  local day_ends = day_exhausted and closes_at(day) or NEVER
  if reject(day_ends >= minute_ends and day or minute) then
    usage.banned_at = now
    usage.banned_until = now + next_ban_ms(usage)
    clear_last_ban(usage)
    changed = true
    return reply_banned(NEW_BAN, usage, limits)
  end
  return reply_decision(LIMITED, usage, limits, math.max(minute_ends, day_ends) - now)
end

for i, key in ipairs(KEYS) do
  local usage = load(key)
  local used = usage.day.used
  decide(usage, { per_minute = tonumber(ARGV[1 + 2 * i]), per_day = tonumber(ARGV[2 + 2 * i]) })
  if changed or usage.day.used ~= used then save(key, usage) end
end
return replies
