// LogFile: a log in a file of one test, read when the log has stopped.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

/// A log whose lines go to a temporary file.
final class LogFile {
  private let folder: TemporaryFolder
  private let descriptor: CInt
  private let queue: LogQueue

  init(_ format: Log.Format = .json) throws {
    folder = try TemporaryFolder()
    descriptor = open(folder.path + "/log", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    try #require(descriptor >= 0)
    queue = try LogQueue(format: format, descriptor: descriptor)
  }

  deinit { close(descriptor) }

  /// Returns a log that writes to the file.
  func log(level: LogLevel = .info) -> Log { Log(level: level, queue: queue) }

  /// Stops the log and returns its lines.
  func lines() throws -> [String] {
    #expect(queue.stop(within: .seconds(10)))
    let text = try String(contentsOf: URL(filePath: folder.path + "/log"), encoding: .utf8)
    return text.split(separator: "\n").map(String.init)
  }
}
