-- wrk's requests for misses: each names a source URL that was never asked for.
local prefix, suffix, run, count = os.getenv("BENCH_PREFIX"), os.getenv("BENCH_SUFFIX"), os.getenv("BENCH_RUN"), 0

function request()
  count = count + 1
  return wrk.format("GET", prefix .. run .. "-" .. count .. suffix)
end
