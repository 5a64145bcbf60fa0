-- wrk's requests for hits among many: one of BENCH_COUNT images, each as likely as the others.
local prefix, suffix, count = os.getenv("BENCH_PREFIX"), os.getenv("BENCH_SUFFIX"), tonumber(os.getenv("BENCH_COUNT"))
local head = "GET " .. prefix
local tail = suffix .. " HTTP/1.1\r\nHost: bench\r\n\r\n"

function init() math.randomseed(1) end
function request() return head .. math.random(1, count) .. tail end
