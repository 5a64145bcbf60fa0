// PressureReader: what the kernel says of this process's memory, read from its control group and its stalls.

import Platform

/// Nothing here tells of pressure.
struct PressureUnreadable: Error, Hashable, CustomStringConvertible {
  let description: String
}

/// Reads cgroup v2's files (the kernel's Documentation/admin-guide/cgroup-v2.rst, “Memory Interface Files”) and pressure
/// stall information (Documentation/accounting/psi.rst).
///
/// `memory.current` counts the page cache of the disk tier's files, which the kernel takes back by itself and which fills
/// any limit sooner or later. So what `memory.stat` says of files is taken off: `active_file` and `inactive_file`, dirty
/// pages included, since they are written without anybody's help; memory files count as anonymous there and stay.
struct PressureReader: Sendable {
  /// Folders of the process's own group and of all above it that can be seen, from the inside out.
  let groups: [String]
  /// The file with the group's stalls, or the machine's.
  let stalls: String?

  /// Finds the group.
  ///
  /// - Parameter root: `/`, or a folder with `proc` and `sys` like the kernel's.
  /// - Throws: where there is neither a group nor a file of stalls: an old kernel, cgroup v1, or no /proc.
  init(root: String = "/") throws(PressureUnreadable) {
    let root = root == "/" ? "" : root
    groups = ControlGroups.folders(in: .unified, root: root)
    stalls = ([groups.first.map { $0 + "/memory.pressure" }, root + "/proc/pressure/memory"])
      .compactMap(\.self).first {
        ControlGroups.text($0).map { Self.average("some", in: $0) != nil } ?? false
      }
    guard
      stalls != nil || groups.contains(where: { ControlGroups.text($0 + "/memory.current") != nil })
    else {
      throw PressureUnreadable(
        description: "neither a control group of version 2 with memory.current nor PSI")
    }
  }

  /// What the kernel says now. What cannot be read, or is no number, says nothing.
  func read() -> PressureSample {
    var sample = PressureSample()
    var lowest = Int.max
    for group in groups {
      // A group above with more room than this one is filled by others: our pictures would not help it much.
      guard let limit = Self.limit(of: group), limit < lowest else { continue }
      lowest = limit
      guard let used = ControlGroups.text(group + "/memory.current").flatMap(Self.number),
        let text = ControlGroups.text(group + "/memory.stat")
      else { continue }
      let kinds = Self.table(text)
      // Without these two the page cache would pass for pressure.
      guard let active = kinds["active_file"], let inactive = kinds["inactive_file"] else {
        continue
      }
      let reclaimable = active + inactive + (kinds["slab_reclaimable"] ?? 0)
      sample.share = max(sample.share ?? 0, Double(max(used - reclaimable, 0)) / Double(limit))
      let events = ControlGroups.text(group + "/memory.events").map(Self.table) ?? [:]
      sample.limitEvents += (events["high"] ?? 0) + (events["max"] ?? 0)
      sample.outOfMemoryEvents += (events["oom"] ?? 0) + (events["oom_kill"] ?? 0)
    }
    if let text = stalls.flatMap({ ControlGroups.text($0) }) {
      sample.someStalled = Self.average("some", in: text)
      sample.allStalled = Self.average("full", in: text)
    }
    return sample
  }

  /// The lower of `memory.max`, beyond which is death, and `memory.high`, beyond which processes are slowed down until
  /// they are as good as dead; `nil` for `max`.
  private static func limit(of group: String) -> Int? {
    ["/memory.max", "/memory.high"].compactMap { ControlGroups.text(group + $0).flatMap(number) }
      .filter { $0 > 0 }.min()
  }

  private static func number(_ text: String) -> Int? {
    text.split(separator: "\n").first.flatMap { Int($0) }.flatMap { $0 < 0 ? nil : $0 }
  }

  /// Lines of a name, a blank and a number.
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

  /// `avg10` of the line that begins with `name`, as a share.
  private static func average(_ name: String, in text: String) -> Double? {
    text.split(separator: "\n").first { $0.hasPrefix(name + " ") }?
      .split(separator: " ").first { $0.hasPrefix("avg10=") }
      .flatMap { Double($0.dropFirst(6)) }
      .flatMap { (0...100).contains($0) ? $0 / 100 : nil }
  }
}
