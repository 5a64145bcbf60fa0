// MemoryRoom: the memory limit of this process and its children.

/// Determines the memory limit of the machine or container.
public enum MemoryRoom {
  /// Returns the minimum, in bytes, of the machine's memory and the limits of all control groups of
  /// the process. `Int.max` if unknown.
  ///
  /// - Parameter root: empty, or a folder with `proc` and `sys` trees for tests.
  public static func bytes(root: String = "") -> Int {
    let unified = ControlGroups.folders(in: .unified, root: root).flatMap {
      [$0 + "/memory.max", $0 + "/memory.high"]
    }
    let memory = ControlGroups.folders(in: .memory, root: root).map {
      $0 + "/memory.limit_in_bytes"
    }
    let limits = (unified + memory).compactMap { path in
      // `max` (version 2) or a huge number (version 1) means no limit.
      ControlGroups.text(path)?.split(separator: "\n").first.flatMap { Int($0) }
    }
    return (limits + [machine(root: root)]).filter { $0 > 0 }.min() ?? .max
  }

  /// Returns `MemTotal` in bytes (proc_meminfo(5) has KiB).
  private static func machine(root: String) -> Int {
    let line = ControlGroups.text(root + "/proc/meminfo")?.split(separator: "\n")
      .first { $0.hasPrefix("MemTotal:") }
    let kibibytes = line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return kibibytes * 1_024
  }
}
