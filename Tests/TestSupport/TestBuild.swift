// TestBuild: where the tests were built, and how.

import CSandbox
import Core
import Glibc
import Testing

/// The build that the running tests belong to.
public enum TestBuild {
  /// The folder of the test program, where SwiftPM puts the package's other programs.
  public static let programFolder: String = {
    var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
    let count = max(readlink("/proc/self/exe", &buffer, buffer.count), 0)
    let path = String(decoding: buffer[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self)
    return "/" + path.split(separator: "/").dropLast().joined(separator: "/")
  }()

  /// Whether this process runs under the thread sanitizer, whose shadow memory exceeds any limit
  /// and which makes everything several times slower.
  public static let isThreadSanitized = dlsym(nil, "__tsan_init") != nil

  /// Whether this process runs under the address sanitizer, which has an allocator of its own.
  public static let isAddressSanitized = dlsym(nil, "__asan_init") != nil

  /// Why workers cannot be sealed completely here; `nil` if they can.
  public static let sealingObstacle: String? =
    if isThreadSanitized {
      "a sanitized worker is never sealed"
    } else if pictor_sandbox_landlock_version() < 1 {
      "this kernel has no Landlock"
    } else {
      nil
    }

  /// Whether this process may look into closed processes, as the server and sealed workers are:
  /// whether it has CAP_SYS_PTRACE (capabilities(7), bit 19), as root outside of most containers.
  public static let seesClosedProcesses: Bool = {
    let status = ControlGroups.text("/proc/self/status")
    let line = status?.split(separator: "\n").first { $0.hasPrefix("CapEff:") }
    let bits = line?.split(separator: "\t").last.flatMap { UInt64($0, radix: 16) } ?? 0
    return bits >> 19 & 1 == 1
  }()
}

extension Trait where Self == ConditionTrait {
  /// Runs a test only where it may look into the server and into sealed workers.
  public static var ifClosedProcessesAreVisible: Self {
    .enabled(if: TestBuild.seesClosedProcesses, "needs CAP_SYS_PTRACE")
  }

  /// Runs a test only where workers can be sealed.
  public static var ifSealable: Self {
    .enabled(
      if: TestBuild.sealingObstacle == nil, Comment(rawValue: TestBuild.sealingObstacle ?? ""))
  }
}
