// SandboxMode: how an imaging worker is sealed off, and what seals it.

/// Whether workers are sealed off before they read untrusted input (docs/security.md).
public enum SandboxMode: String, CaseIterable, Sendable {
  /// Every layer, or the server does not start.
  case required
  /// Every layer that the kernel has. The log and `/stats` tell which.
  case ifPossible = "if_possible"
  /// None, for debuggers and profilers.
  case off
}

/// The layers that seal a worker. A worker reports them before its first job.
public struct SandboxReport: Codable, Hashable, Sendable {
  /// The version of Landlock's interface; 0 if Landlock does not restrict the worker.
  public var landlock: Int
  /// Whether seccomp filters the worker's system calls.
  public var seccomp: Bool

  /// Creates a report, by default of an open worker.
  public init(landlock: Int = 0, seccomp: Bool = false) {
    (self.landlock, self.seccomp) = (landlock, seccomp)
  }

  /// Whether every layer is there.
  public var isWhole: Bool { landlock > 0 && seccomp }
}
