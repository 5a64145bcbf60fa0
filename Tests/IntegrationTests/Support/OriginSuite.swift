// OriginSuite: what most suites begin with: a folder for the program, and an origin.

import TestSupport

/// Each test has its own folder and origin. Suites are final classes below this one.
class OriginSuite {
  let folder: TemporaryFolder
  let origin: Origin

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
  }
}
