// The worker's program. Everything it does is in Imager: what is written here would belong to the main actor.

import Glibc

exit(Imager.run(arguments: CommandLine.arguments))
