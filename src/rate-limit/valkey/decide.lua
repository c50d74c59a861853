-- Admits or refuses one request of each of KEYS, in order; a subject may occur more than once.
-- ARGV[5..] are the limits, two for each key: per minute and per day.
-- Replies five numbers for each: outcome, limit, remaining, when that resets and how long to wait (in milliseconds).
local ALLOWED, LIMITED, BANNED = 0, 1, 2

local function charge(window)
  if window.used == 0 then
    window.opened_at = now
    changed = true
  end
  window.used = window.used + 1
end

local function strike(window, rules)
  if window.refused_at == NEVER then
    window.refused_at = now
    changed = true
  elseif now - window.refused_at > rules.grace_ms then
    window.strikes = window.strikes + 1
    changed = true
  end
  if window.strikes < rules.strikes then return false end
  window.strikes = 0
  return true
end

local function left(window, limit)
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

-- Describes the window with the fewest requests left; on a tie, the longer one.
local function reply_window(outcome, usage, limits, wait_ms)
  local minute_left, day_left = left(usage.minute, limits.per_minute), left(usage.day, limits.per_day)
  if minute_left < day_left then
    return reply(outcome, limits.per_minute, minute_left, closing(usage.minute), wait_ms)
  end
  return reply(outcome, limits.per_day, day_left, closing(usage.day), wait_ms)
end

local function reply_ban(usage, limits)
  local shorter = left(usage.minute, limits.per_minute) < left(usage.day, limits.per_day)
  local limit = shorter and limits.per_minute or limits.per_day
  return reply(BANNED, limit, 0, usage.banned_until, usage.banned_until - now)
end

local function decide(usage, limits, rules)
  settle(usage, rules)
  if now < usage.banned_until then return reply_ban(usage, limits) end

  local minute, day = usage.minute, usage.day
  local minute_spent, day_spent = minute.used >= limits.per_minute, day.used >= limits.per_day
  if not minute_spent and not day_spent then
    charge(minute)
    charge(day)
    return reply_window(ALLOWED, usage, limits, 0)
  end

  local minute_ends = minute_spent and closing(minute) or NEVER
  local day_ends = day_spent and closing(day) or NEVER
  if rules and strike(day_ends >= minute_ends and day or minute, rules) then
    usage.banned_at = now
    usage.banned_until = now + rules.length_ms
    changed = true
    return reply_ban(usage, limits)
  end
  return reply_window(LIMITED, usage, limits, math.max(minute_ends, day_ends) - now)
end

for i, key in ipairs(KEYS) do
  local usage = load(key)
  local used = usage.day.used
  decide(usage, { per_minute = tonumber(ARGV[3 + 2 * i]), per_day = tonumber(ARGV[4 + 2 * i]) }, rules_of(key))
  if changed or usage.day.used ~= used then save(key, usage) end
end
return replies
