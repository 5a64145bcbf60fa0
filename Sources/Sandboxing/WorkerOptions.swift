// WorkerOptions: the command line that the server passes to a worker.

import Core

/// A worker's command line.
public struct WorkerOptions: Sendable {
  /// Added to the niceness, 0–19. The server always says how much.
  public var niceness: CInt = 0
  /// Maximum private writable memory in bytes (RLIMIT_DATA). `nil` means no limit.
  public var memory: UInt64?
  /// Maximum size in bytes of a written file, results included (RLIMIT_FSIZE). `nil` means no
  /// limit.
  public var fileSize: UInt64?
  /// Whether the worker has to be sealed.
  public var sandbox = SandboxMode.ifPossible

  /// The form of the command line.
  public static let usage =
    "pictor-imager --worker [--nice 0…19] [--memory BYTES] [--file-size BYTES] [--sandbox MODE]"

  /// Parses the arguments after the program's name. Returns `nil` if they are not a server's.
  public init?(arguments: [String]) {
    guard arguments.first == "--worker" else { return nil }
    var rest = arguments.dropFirst()
    while let name = rest.popFirst() {
      guard let value = rest.popFirst() else { return nil }
      let number = UInt64(value)
      switch (name, number) {
      case ("--nice", let number?) where number <= 19: niceness = CInt(number)
      case ("--memory", let number?) where number > 0: memory = number
      case ("--file-size", let number?) where number > 0: fileSize = number
      case ("--sandbox", nil):
        guard let mode = SandboxMode(rawValue: value) else { return nil }
        sandbox = mode
      default: return nil
      }
    }
  }
}
