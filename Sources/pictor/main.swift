// The server's entry: everything it does is in Program.

import Glibc

exit(Program.run(arguments: Array(CommandLine.arguments.dropFirst())))
