// The benchmark of the cache's tiers. Everything it does is in CacheBenchmark: what is written here would belong to the
// main actor.

await CacheBenchmark.run(arguments: Array(CommandLine.arguments.dropFirst()))
