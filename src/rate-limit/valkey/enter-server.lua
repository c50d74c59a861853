-- Enters a server in the hash KEYS[1], unless ARGV[3], its identifier, is empty; ARGV[4] is what it tells of itself.
-- Replies what each server told that was entered in the last 15 seconds. The others are gone.
local GONE_AFTER_MS = 15000

if ARGV[3] ~= '' then
  redis.call('HSET', KEYS[1], ARGV[3], string.format('%.0f:', now) .. ARGV[4])
end
local fields = redis.call('HGETALL', KEYS[1])
local texts = {}
for i = 1, #fields, 2 do
  local at, text = string.match(fields[i + 1], '^(%d+):(.*)$')
  if at and math.abs(now - tonumber(at)) <= GONE_AFTER_MS then
    texts[#texts + 1] = text
  else
    redis.call('HDEL', KEYS[1], fields[i])
  end
end
if #texts > 0 then redis.call('PEXPIRE', KEYS[1], GONE_AFTER_MS) end
return texts
