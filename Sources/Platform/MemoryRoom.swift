// MemoryRoom: how much memory this process and its children may use together.

/// The bound that the machine sets, or the container.
public enum MemoryRoom {
  /// The least of the machine's memory and of the limits of all control groups that the process is in, of version 1 and 2.
  /// `Int.max` where nothing tells.
  ///
  /// - Parameter root: Empty, or a folder with `proc` and `sys` like the kernel's.
  public static func bytes(root: String = "") -> Int {
    let unified = ControlGroups.folders(in: .unified, root: root).flatMap {
      [$0 + "/memory.max", $0 + "/memory.high"]
    }
    let memory = ControlGroups.folders(in: .memory, root: root).map {
      $0 + "/memory.limit_in_bytes"
    }
    let limits = (unified + memory).compactMap { path in
      // `max`, or of version 1 a number beyond any machine, is no limit.
      ControlGroups.text(path)?.split(separator: "\n").first.flatMap { Int($0) }
    }
    return (limits + [machine(root: root)]).filter { $0 > 0 }.min() ?? .max
  }

  /// `MemTotal` in KiB (proc_meminfo(5)).
  private static func machine(root: String) -> Int {
    let line = ControlGroups.text(root + "/proc/meminfo")?.split(separator: "\n")
      .first { $0.hasPrefix("MemTotal:") }
    let kibibytes = line?.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
    return kibibytes * 1_024
  }
}
