// The server's entry: everything it does is in Program.

import Glibc

// Before the first await: every thread started later inherits that these signals are blocked.
let stopSignals = StopSignals()
exit(
  await Program.run(arguments: Array(CommandLine.arguments.dropFirst()), stopSignals: stopSignals))
