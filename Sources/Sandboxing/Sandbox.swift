// Sandbox: seals the process off from the machine, for the rest of its life.

import CSandbox
import Core
import Glibc

/// A layer of the sandbox that the kernel does not grant.
public struct SandboxError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The layer and the reason.
  let reason: String

  /// The error as one line for the operator.
  public var description: String {
    "imaging.sandbox is required, and a layer is missing: \(reason)"
  }

  init(_ layer: String, _ code: CInt) { reason = "\(layer): \(errnoText(code))" }

  init(_ reason: String) { self.reason = reason }
}

/// What a worker gives up before its first job: files, processes, network, most system calls.
public enum Sandbox {
  /// Whether this build can be sealed. The thread sanitizer's runtime makes system calls of its
  /// own, starts a thread early, and reads /proc, so its workers stay open.
  public static let isBuilt: Bool = {
    #if SANITIZED
      return false
    #else
      return true
    #endif
  }()

  /// Seals the process. Everything that it needs must be loaded, and it must have one thread:
  /// Landlock restricts the calling thread and those that it starts later.
  ///
  /// - Parameters:
  ///   - mode: whether missing layers are an error.
  ///   - connection: the descriptor of the connection to the server.
  /// - Returns: the layers in force.
  /// - Throws: the first missing layer, in `required` mode.
  public static func enter(_ mode: SandboxMode, connection: CInt) throws(SandboxError)
    -> SandboxReport
  {
    guard mode != .off else { return SandboxReport() }
    guard isBuilt else {
      guard mode == .ifPossible else {
        throw SandboxError("a build for the thread sanitizer has no sandbox")
      }
      return SandboxReport()
    }
    var report = SandboxReport()
    do throws(SandboxError) {
      report.landlock = try FileRules.restrict()
    } catch {
      guard mode == .ifPossible else { throw error }
    }
    do throws(SandboxError) {
      try CallFilter.install(connection: connection)
      report.seccomp = true
    } catch {
      guard mode == .ifPossible else { throw error }
    }
    return report
  }
}
