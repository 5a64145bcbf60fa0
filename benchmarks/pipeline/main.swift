// The benchmark's program. Everything it does is in PipelineBenchmark: what is written here would belong to the main
// actor.

import Glibc

exit(PipelineBenchmark.run(arguments: Array(CommandLine.arguments.dropFirst())))
