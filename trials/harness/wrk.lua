-- Sends the requests of a plan (a Lua table that wrk.ts writes) and prints one line of figures at the end.
--   parts    requests: prefix .. value .. suffix, values from a file, one a line; or prefix .. suffix alone
--   pattern  which part each of successive requests takes
--   offset   where in its values a part begins, so that rounds continue and do not repeat
--   delayMs  mean pause of a connection between two requests, uniform from 0 to twice as long

local parts, pattern = {}, {}
local slot = 0

local function load(part, offset)
  if not part.values then return { fixed = part.prefix .. part.suffix } end
  local values = {}
  for line in io.lines(part.values) do values[#values + 1] = line end
  return { prefix = part.prefix, suffix = part.suffix, values = values, at = offset % #values }
end

function init(args)
  local plan = dofile(args[1])
  pattern = plan.pattern
  for i, part in ipairs(plan.parts) do parts[i] = load(part, plan.offset) end
  if plan.delayMs > 0 then
    math.randomseed(7)
    function delay() return math.floor(plan.delayMs * 2 * math.random() + 0.5) end
  end
end

function request()
  slot = slot % #pattern + 1
  local part = parts[pattern[slot]]
  if part.fixed then return part.fixed end
  part.at = part.at % #part.values + 1
  return part.prefix .. part.values[part.at] .. part.suffix
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '\nFIGURES {"requests":%d,"micros":%d,"bytes":%d,"p50":%d,"p99":%d,"rejected":%d,"failed":%d}\n',
    summary.requests, summary.duration, summary.bytes,
    latency:percentile(50), latency:percentile(99),
    errors.status, errors.connect + errors.read + errors.write + errors.timeout))
end
