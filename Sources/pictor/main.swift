// main: starts `Program`.

import Commanding
import Core
import Glibc

// Before anything is opened.
StandardStreams.fill()
// First: the environment may hold secrets, and an imaging worker runs as the same user.
do {
  try ProcessPrivacy.protect()
} catch {
  reportError("prctl, PR_SET_DUMPABLE: \(error)")
  exit(1)
}
exit(Program.run(arguments: Array(CommandLine.arguments.dropFirst())))
