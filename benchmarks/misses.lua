-- wrk's requests for misses: each names a source URL that was never asked for.
local id, count = math.random(1, 2 ^ 30), 0
local prefix, suffix = os.getenv("MISS_PREFIX"), os.getenv("MISS_SUFFIX")

function setup(thread) thread:set("seed", os.time() + math.random(1, 10000)) end
function init() math.randomseed(seed); id = math.random(1, 2 ^ 30) end
function request()
  count = count + 1
  return wrk.format("GET", prefix .. id .. "-" .. count .. suffix)
end
