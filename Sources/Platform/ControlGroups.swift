// ControlGroups: where the kernel keeps the control groups of this process, of either version.

import Glibc

/// Finds the folders of the groups that this process is in (cgroups(7)).
public enum ControlGroups {
  /// A hierarchy that may bound memory.
  public enum Hierarchy: Sendable {
    /// Version 2: one tree for everything.
    case unified
    /// Version 1: the tree of the controller `memory`.
    case memory
  }

  /// Folders of the process's own group and of all above it that can be seen, from the inside out; empty where there is
  /// no such hierarchy.
  ///
  /// - Parameter root: Empty, or a folder with `proc` and `sys` like the kernel's.
  public static func folders(in hierarchy: Hierarchy, root: String = "") -> [String] {
    guard let groups = text(root + "/proc/self/cgroup"),
      let own = groups.split(separator: "\n").firstNonNil({ path(in: $0, of: hierarchy) }),
      let mounts = text(root + "/proc/self/mountinfo")
    else { return [] }
    for line in mounts.split(separator: "\n") {
      // Fields as in proc_pid_mountinfo(5): the fourth is the root of the mount, the fifth its place, and behind ` - `
      // stand the type, the source and the options of the hierarchy.
      let halves = line.split(separator: " - ", maxSplits: 1)
      let fields = halves[0].split(separator: " ")
      guard halves.count == 2, fields.count > 4, isMount(halves[1], of: hierarchy) else { continue }
      let place = root + String(fields[4])
      // In a container the mount's root may be the group itself, or one that the path, told in another namespace, does
      // not lie below: then what is mounted is the best there is.
      let inside = below(fields[3], own) ?? ""
      var names = inside.split(separator: "/")[...]
      if names.contains("..") { names = [] }
      return (0...names.count).reversed().map { count in
        ([place] + names.prefix(count).map(String.init)).joined(separator: "/")
      }
    }
    return []
  }

  /// The group's path where a line of /proc/self/cgroup (`number:controllers:path`) is about this hierarchy.
  private static func path(in line: Substring, of hierarchy: Hierarchy) -> Substring? {
    let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
    guard fields.count == 3, fields[2].hasPrefix("/") else { return nil }
    let isMeant =
      switch hierarchy {
      case .unified: fields[0] == "0" && fields[1].isEmpty
      case .memory: fields[1].split(separator: ",").contains("memory")
      }
    return isMeant ? fields[2] : nil
  }

  private static func isMount(_ text: Substring, of hierarchy: Hierarchy) -> Bool {
    let fields = text.split(separator: " ")
    switch hierarchy {
    case .unified: return fields.first == "cgroup2"
    case .memory:
      return fields.first == "cgroup" && fields.count > 2
        && fields[2].split(separator: ",").contains("memory")
    }
  }

  /// What of `path` lies below `folder`; `nil` where it does not.
  private static func below(_ folder: Substring, _ path: Substring) -> Substring? {
    if folder == "/" { return path }
    guard path.hasPrefix(folder) else { return nil }
    let rest = path.dropFirst(folder.count)
    return rest.isEmpty || rest.hasPrefix("/") ? rest : nil
  }

  /// A small file's text; `nil` where it cannot be read, or is empty.
  public static func text(_ path: String) -> String? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    // mountinfo may be long, and the kernel hands out such files a page at a time.
    var page = [UInt8](repeating: 0, count: 16_384)
    while bytes.count < 1 << 20 {
      let count = read(descriptor, &page, page.count)
      guard count > 0 else { break }
      bytes += page[..<count]
    }
    return bytes.isEmpty ? nil : String(decoding: bytes, as: UTF8.self)
  }
}

extension Sequence {
  /// The first result that there is.
  fileprivate func firstNonNil<Result>(_ body: (Element) -> Result?) -> Result? {
    for element in self {
      if let result = body(element) { return result }
    }
    return nil
  }
}
