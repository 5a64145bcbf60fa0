// ControlGroups: finds the control groups of this process, of version 1 and 2.

/// Finds the folders of the process's control groups (cgroups(7)).
public enum ControlGroups {
  /// A hierarchy that can limit memory.
  public enum Hierarchy: Sendable {
    /// Version 2: one hierarchy for all controllers.
    case unified
    /// Version 1: the hierarchy of the controller `memory`.
    case memory
  }

  /// Returns the folders of the process's own group and of all visible ancestors, innermost first.
  /// Empty if the hierarchy does not exist.
  ///
  /// - Parameter root: empty, or a folder with `proc` and `sys` trees for tests.
  public static func folders(in hierarchy: Hierarchy, root: String = "") -> [String] {
    guard let groups = text(root + "/proc/self/cgroup"),
      let own = groups.split(separator: "\n").compactMap({ path(in: $0, of: hierarchy) }).first,
      let mounts = text(root + "/proc/self/mountinfo")
    else { return [] }
    for line in mounts.split(separator: "\n") {
      // In proc_pid_mountinfo(5), field 4 is the root of the mount and field 5 its mount point.
      // Type, source and options follow ` - `.
      let halves = line.split(separator: " - ", maxSplits: 1)
      let fields = halves[0].split(separator: " ")
      guard halves.count == 2, fields.count > 4, isMount(halves[1], of: hierarchy) else { continue }
      let place = root + String(fields[4])
      // In a container, the mount's root may be the group itself or lie outside of the path's
      // namespace. Then the mount point is the best match.
      let inside = below(fields[3], path: own) ?? ""
      var names = inside.split(separator: "/")[...]
      if names.contains("..") { names = [] }
      return (0...names.count).reversed().map { count in
        ([place] + names.prefix(count).map(String.init)).joined(separator: "/")
      }
    }
    return []
  }

  /// Returns the group's path if a line of /proc/self/cgroup (`number:controllers:path`) belongs to
  /// the hierarchy.
  private static func path(in line: Substring, of hierarchy: Hierarchy) -> Substring? {
    let fields = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false)
    guard fields.count == 3, fields[2].hasPrefix("/") else { return nil }
    let belongs =
      switch hierarchy {
      case .unified: fields[0] == "0" && fields[1].isEmpty
      case .memory: fields[1].split(separator: ",").contains("memory")
      }
    return belongs ? fields[2] : nil
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

  /// Returns `path` relative to `folder`, or `nil` if it lies outside.
  private static func below(_ folder: Substring, path: Substring) -> Substring? {
    if folder == "/" { return path }
    guard path.hasPrefix(folder) else { return nil }
    let rest = path.dropFirst(folder.count)
    return rest.isEmpty || rest.hasPrefix("/") ? rest : nil
  }

  /// Returns the text of a small file, or `nil` if it is empty or cannot be read.
  public static func text(_ path: String) -> String? {
    guard let bytes = try? FileContents.read(path, limit: 16 << 20), !bytes.isEmpty else {
      return nil
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
