// ImagerOptions: the command line that the server passes to a worker.

/// A worker's command line.
struct ImagerOptions {
  /// Added to the niceness, 0–19. The server always says how much.
  var niceness: CInt = 0
  /// Most bytes of private writable memory (RLIMIT_DATA); `nil`: no bound.
  var memory: UInt64?
  /// Maximum size in bytes of a written file, results included (RLIMIT_FSIZE). `nil` means no
  /// limit.
  var fileSize: UInt64?

  static let usage = "pictor-imager --worker [--nice 0…19] [--memory BYTES] [--file-size BYTES]"

  /// Parses the arguments after the program's name. Returns `nil` if they are not a server's.
  init?(arguments: [String]) {
    guard arguments.first == "--worker" else { return nil }
    var rest = arguments.dropFirst()
    while let name = rest.popFirst() {
      guard let value = rest.popFirst().flatMap(UInt64.init) else { return nil }
      switch name {
      case "--nice" where value <= 19: niceness = CInt(value)
      case "--memory" where value > 0: memory = value
      case "--file-size" where value > 0: fileSize = value
      default: return nil
      }
    }
  }
}
