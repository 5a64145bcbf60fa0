// PressureReaderTests: reading memory pressure from folders like the kernel's.

import Glibc
import Model
import Telemetry
import TestSupport
import Testing

@testable import Caching

/// `/proc` and `/sys` of a machine with control groups.
struct FakeKernel {
  let folder: TemporaryFolder

  init(
    cgroup: String = "0::/a/b\n",
    mounts: String = "30 1 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n"
  ) throws {
    folder = try TemporaryFolder()
    try write("proc/self/cgroup", text: cgroup)
    try write("proc/self/mountinfo", text: "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n" + mounts)
  }

  func write(_ path: String, text: String) throws {
    var made = folder.path
    for name in path.split(separator: "/").dropLast() {
      made += "/" + name
      mkdir(made, 0o755)
    }
    try folder.write(path, bytes: Array(text.utf8))
  }

  /// Writes a group with a limit, its memory use, and the page cache's part of the use.
  func group(_ path: String, limit: String, used: Int, cache: Int = 0) throws {
    let place = "sys/fs/cgroup" + path
    try write(place + "/memory.max", text: limit + "\n")
    try write(place + "/memory.high", text: "max\n")
    try write(place + "/memory.current", text: "\(used)\n")
    try write(
      place + "/memory.stat",
      text:
        "anon \(used - cache)\nfile \(cache)\ninactive_file \(cache / 2)\nactive_file \(cache / 2)\n"
    )
    try write(place + "/memory.events", text: "low 0\nhigh 1\nmax 2\noom 3\noom_kill 4\n")
  }

  func reader() throws -> PressureReader { try PressureReader(root: folder.path) }
}

@Suite(.onOwnThreads) struct PressureReaderTests {
  @Test func `page cache is subtracted from memory use`() throws {
    let kernel = try FakeKernel()
    try kernel.group("/a/b", limit: "1000000", used: 990_000, cache: 500_000)
    let sample = try kernel.reader().read()
    #expect(sample.share == 0.49)
    #expect(sample.limitEvents.values.reduce(0, +) == 3)
    #expect(sample.outOfMemoryEvents.values.reduce(0, +) == 7)
    #expect(sample.someStalled == nil && sample.allStalled == nil)
  }

  @Test func `what is free is that of the lowest limit, or of the machine`() throws {
    let kernel = try FakeKernel()
    try kernel.group("/a/b", limit: "max", used: 500)
    try kernel.group("/a", limit: "max", used: 500)
    try kernel.write("proc/meminfo", text: "MemTotal: 24000 kB\nMemAvailable:   23000 kB\n")
    #expect(try kernel.reader().read().free == 23_000 * 1_024)
    try kernel.group("/a", limit: "2000", used: 700)
    try kernel.group("/a/b", limit: "1000", used: 600, cache: 400)
    #expect(try kernel.reader().read().free == 800)
  }

  @Test func `ancestors with a lower limit count, and the highest share is reported`() throws {
    let kernel = try FakeKernel()
    try kernel.group("/a/b", limit: "max", used: 500)
    try kernel.group("/a", limit: "1000", used: 700)
    #expect(try kernel.reader().read().share == 0.7)
    try kernel.group("/a/b", limit: "800", used: 200)
    #expect(try kernel.reader().read().share == 0.25)
    try kernel.group("/a/b", limit: "2000", used: 200)
    let sample = try kernel.reader().read()
    #expect(sample.share == 0.7)
    #expect(sample.limitEvents.values.reduce(0, +) == 6)
  }

  @Test func `memory.high counts as a limit`() throws {
    let kernel = try FakeKernel()
    try kernel.group("/a/b", limit: "1000", used: 400)
    try kernel.write("sys/fs/cgroup/a/b/memory.high", text: "500\n")
    #expect(try kernel.reader().read().share == 0.8)
  }

  @Test func `without a limit there is no share, and a later limit is noticed`() throws {
    let kernel = try FakeKernel()
    try kernel.group("/a/b", limit: "max", used: 500)
    let reader = try kernel.reader()
    #expect(reader.read().share == nil)
    try kernel.group("/a/b", limit: "1000", used: 500)
    #expect(reader.read().share == 0.5)
  }

  @Test(arguments: ["", "\n", "garbage\n", "-5\n", "0\n", "99999999999999999999\n", "10 20\n"])
  func `malformed numbers are ignored`(text: String) throws {
    let kernel = try FakeKernel()
    for file in ["memory.max", "memory.current", "memory.stat", "memory.events"] {
      try kernel.group("/a/b", limit: "1000", used: 500)
      let reader = try kernel.reader()
      try kernel.write("sys/fs/cgroup/a/b/" + file, text: text)
      let sample = reader.read()
      let share = sample.share
      switch file {
      case "memory.events":
        #expect(share == 0.5 && sample.limitEvents.isEmpty && sample.outOfMemoryEvents.isEmpty)
      case "memory.current" where text == "0\n": #expect(share == 0)
      default: #expect(share == nil, "\(file)")
      }
    }
  }

  @Test func `removed files are ignored`() throws {
    let kernel = try FakeKernel()
    try kernel.group("/a/b", limit: "1000", used: 500)
    try kernel.write("proc/pressure/memory", text: stalls)
    let reader = try kernel.reader()
    TemporaryFolder.remove(kernel.folder.path + "/sys")
    TemporaryFolder.remove(kernel.folder.path + "/proc/pressure")
    #expect(reader.read() == PressureSample())
  }

  private let stalls = """
    some avg10=12.50 avg60=1.00 avg300=0.10 total=1234567
    full avg10=3.00 avg60=0.50 avg300=0.05 total=234567

    """

  @Test func `stalls come from the group, or else from the machine`() throws {
    let kernel = try FakeKernel()
    try kernel.write("proc/pressure/memory", text: stalls)
    let machine = try kernel.reader().read()
    #expect(machine.someStalled == 0.125)
    #expect(machine.allStalled == 0.03)
    #expect(machine.share == nil)
    try kernel.write(
      "sys/fs/cgroup/a/b/memory.pressure", text: "some avg10=50.00\nfull avg10=nan\n")
    let group = try kernel.reader().read()
    #expect(group.someStalled == 0.5)
    #expect(group.allStalled == nil)
  }

  @Test(arguments: [
    // A group in a container's own namespace, which the mount shows as the root.
    ("0::/\n", "/", [""]),
    // A path on the host. The mount shows its inner part.
    ("0::/a/b/c\n", "/a/b", ["/c", ""]),
    ("0::/a/b\n", "/a/b", [""]),
    // A path outside the mount.
    ("0::/a/bc\n", "/a/b", [""]),
    ("0::/../other\n", "/", [""]),
    // Version 1 and version 2.
    ("4:memory:/x\n0::/a\n", "/", ["/a", ""]),
  ])
  func `the group is searched from the innermost to the outermost`(
    cgroup: String, mounted: String, expected: [String]
  ) throws {
    let kernel = try FakeKernel(
      cgroup: cgroup,
      mounts: "31 1 0:5 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        + "32 1 0:6 \(mounted) /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n")
    try kernel.write("proc/pressure/memory", text: stalls)
    let place = kernel.folder.path + "/sys/fs/cgroup"
    #expect(try kernel.reader().groups == expected.map { place + $0 })
  }

  /// A machine with version 1, or with version 2 that has everything but memory beside it.
  private func oldKernel(limit: String = "1000000", isHybrid: Bool) throws -> FakeKernel {
    let kernel = try FakeKernel(
      cgroup: "4:memory:/x\n" + (isHybrid ? "0::/a/b\n" : ""),
      mounts: "31 1 0:5 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        + (isHybrid ? "32 1 0:6 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n" : ""))
    let place = "sys/fs/cgroup/memory/x"
    try kernel.write(place + "/memory.limit_in_bytes", text: limit + "\n")
    try kernel.write(place + "/memory.usage_in_bytes", text: "900000\n")
    try kernel.write(
      place + "/memory.stat",
      text: "active_file 1\ninactive_file 1\ntotal_inactive_file 100000\ntotal_active_file 50000\n")
    try kernel.write(place + "/memory.failcnt", text: "17\n")
    try kernel.write(
      place + "/memory.oom_control", text: "oom_kill_disable 0\nunder_oom 0\noom_kill 2\n")
    return kernel
  }

  @Test(arguments: [true, false])
  func `cgroup v1 reports the same figures, including child groups`(isHybrid: Bool) throws {
    let kernel = try oldKernel(isHybrid: isHybrid)
    let sample = try kernel.reader().read()
    #expect(sample.share == 0.75)
    #expect(sample.limitEvents.values.reduce(0, +) == 17)
    #expect(sample.outOfMemoryEvents.values.reduce(0, +) == 2)
  }

  @Test func `in cgroup v1 the maximum limit means none, so there is no share`() throws {
    let kernel = try oldKernel(limit: "9223372036854771712", isHybrid: false)
    let reader = try kernel.reader()
    #expect(reader.read().share == nil)
    try kernel.write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", text: "1000000\n")
    #expect(reader.read().share == 0.75)
  }

  @Test func `without any readable memory figures the reader throws`() throws {
    // As on a machine where version 2 has everything but memory.
    let hybrid = try FakeKernel()
    try hybrid.write("sys/fs/cgroup/a/b/cgroup.procs", text: "1\n")
    #expect(throws: PressureUnreadable.self) { try hybrid.reader() }
    let nothing = try TemporaryFolder()
    #expect(throws: PressureUnreadable.self) { try PressureReader(root: nothing.path) }
  }

  @Test func `this machine's own files are read or reported as unreadable`() {
    guard let sample = (try? PressureReader())?.read() else { return }
    #expect(sample.share.map { (0...1.5).contains($0) } ?? true)
    #expect(sample.someStalled.map { (0...1).contains($0) } ?? true)
  }
}
