// PressureReader: reads memory use and stalls of the process's control groups from the kernel.

import Platform

/// The system reports neither memory use nor stalls.
struct PressureUnreadable: Error, Hashable, CustomStringConvertible {
  let description: String
}

/// Reads the files of control groups and pressure stall information.
///
/// Sources in the kernel's Documentation:
/// - version 2: admin-guide/cgroup-v2.rst, “Memory Interface Files”
/// - version 1, if memory is not under version 2: admin-guide/cgroup-v1/memory.rst
/// - stalls: accounting/psi.rst
///
/// Memory in use includes the page cache of the disk tier's files. It fills any limit, but the
/// kernel reclaims it. So active and inactive file pages of `memory.stat` are subtracted, also
/// dirty ones, which the kernel writes. Memory files count as anonymous and are not.
struct PressureReader: Sendable {
  /// The names of one version's files and of their entries.
  private struct Names: Sendable {
    /// The least of these is the limit.
    let limits: [String]
    let used: String
    let activeFiles: String
    let inactiveFiles: String
    /// The file that counts how often a limit was reached, and its entries, or a single number.
    let limitEvents: (file: String, names: [String]?)
    let outOfMemoryEvents: (file: String, names: [String])

    static let version2 = Names(
      limits: ["/memory.max", "/memory.high"], used: "/memory.current",
      activeFiles: "active_file", inactiveFiles: "inactive_file",
      limitEvents: ("/memory.events", ["high", "max"]),
      outOfMemoryEvents: ("/memory.events", ["oom", "oom_kill"]))
    /// Sums over the groups below have the prefix `total_`.
    static let version1 = Names(
      limits: ["/memory.limit_in_bytes"], used: "/memory.usage_in_bytes",
      activeFiles: "total_active_file", inactiveFiles: "total_inactive_file",
      limitEvents: ("/memory.failcnt", nil),
      outOfMemoryEvents: ("/memory.oom_control", ["oom_kill"]))
  }

  /// Folders of the process's group and of all visible groups above it, from the inside out.
  let groups: [String]
  /// The file with the stalls of the group, or of the machine.
  let stalls: String?
  private let names: Names
  private let root: String

  /// Finds the control groups.
  ///
  /// - Parameter root: `/`, or a folder with `proc` and `sys` like the kernel's.
  /// - Throws: if there is neither a group nor a file of stalls: an old kernel, or no /proc.
  init(root: String = "/") throws(PressureUnreadable) {
    let root = root == "/" ? "" : root
    self.root = root
    let unified = ControlGroups.folders(in: .unified, root: root)
    let memory = ControlGroups.folders(in: .memory, root: root)
    let isVersion1 =
      !Self.tells(unified, names: .version2) && Self.tells(memory, names: .version1)
    (groups, names) = isVersion1 ? (memory, .version1) : (unified, .version2)
    stalls = ([unified.first.map { $0 + "/memory.pressure" }, root + "/proc/pressure/memory"])
      .compactMap(\.self).first {
        ControlGroups.text($0).map { Self.average("some", in: $0) != nil } ?? false
      }
    guard stalls != nil || Self.tells(groups, names: names) else {
      throw PressureUnreadable(
        description: "neither a control group with memory use nor PSI")
    }
  }

  /// Whether any of the groups reports its memory use.
  private static func tells(_ groups: [String], names: Names) -> Bool {
    groups.contains { ControlGroups.text($0 + names.used) != nil }
  }

  /// Reads the current values. A value that cannot be read or parsed is absent.
  func read() -> PressureSample {
    var sample = PressureSample()
    var lowest = Int.max
    for group in groups {
      // Other processes fill an outer group with more room, so evicting images hardly helps.
      guard let limit = limit(of: group), limit < lowest else { continue }
      lowest = limit
      guard let used = ControlGroups.text(group + names.used).flatMap(Self.number),
        let text = ControlGroups.text(group + "/memory.stat")
      else { continue }
      let kinds = Self.table(text)
      // Without these two entries the page cache would count as pressure.
      guard let active = kinds[names.activeFiles[...]],
        let inactive = kinds[names.inactiveFiles[...]]
      else { continue }
      let reclaimable = active + inactive + (kinds["slab_reclaimable"] ?? 0)
      let kept = max(used - reclaimable, 0)
      sample.share = max(sample.share ?? 0, Double(kept) / Double(limit))
      sample.free = min(sample.free ?? .max, max(limit - kept, 0))
      Self.add(names.limitEvents.names, of: group + names.limitEvents.file, to: &sample.limitEvents)
      Self.add(
        names.outOfMemoryEvents.names, of: group + names.outOfMemoryEvents.file,
        to: &sample.outOfMemoryEvents)
    }
    sample.free = sample.free ?? machineFree
    if let text = stalls.flatMap({ ControlGroups.text($0) }) {
      sample.someStalled = Self.average("some", in: text)
      sample.allStalled = Self.average("full", in: text)
    }
    return sample
  }

  /// What the machine could give without swapping (`MemAvailable` of proc_meminfo(5)), in bytes.
  private var machineFree: Int? {
    ControlGroups.text(root + "/proc/meminfo")?.split(separator: "\n")
      .first { $0.hasPrefix("MemAvailable:") }?
      .split(separator: " ").dropFirst().first.flatMap { Int($0) }
      .flatMap { (0...(1 << 50)).contains($0) ? $0 * 1_024 : nil }
  }

  /// The lower of `memory.max`, above which processes are killed, and `memory.high`, above which
  /// they stand still. `nil` for `max`; version 1 writes a number larger than any machine instead.
  private func limit(of group: String) -> Int? {
    names.limits.compactMap { ControlGroups.text(group + $0).flatMap(Self.number) }
      .filter { (1...(1 << 60)).contains($0) }.min()
  }

  /// Adds the entries of a table, or a file's single number. Unreadable numbers stay absent.
  private static func add(_ names: [String]?, of file: String, to counters: inout [String: Int]) {
    guard let text = ControlGroups.text(file) else { return }
    guard let names else {
      counters[file] = number(text)
      return
    }
    let table = table(text)
    for name in names { counters[file + " " + name] = table[name[...]] }
  }

  private static func number(_ text: String) -> Int? {
    text.split(separator: "\n").first.flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
  }

  /// Parses lines of a name, a space and a number.
  private static func table(_ text: String) -> [Substring: Int] {
    var table: [Substring: Int] = [:]
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count == 2, let value = Int(words[1]), (0...(1 << 60)).contains(value) else {
        continue
      }
      table[words[0]] = value
    }
    return table
  }

  /// Returns `avg10` of the line that starts with `name`, as a share of 0 to 1.
  private static func average(_ name: String, in text: String) -> Double? {
    text.split(separator: "\n").first { $0.hasPrefix(name + " ") }?
      .split(separator: " ").first { $0.hasPrefix("avg10=") }
      .flatMap { Double($0.dropFirst(6)) }
      .flatMap { (0...100).contains($0) ? $0 / 100 : nil }
  }
}
