// main: starts `Imager`, whose code does not belong to the main actor.

import Glibc

exit(Imager.run(arguments: CommandLine.arguments))
