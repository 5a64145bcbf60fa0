// PressureReaderTests: reading memory pressure from folders like the kernel's.

import Core
import Glibc
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
  }

  func reader() throws -> PressureReader { try PressureReader(root: folder.path) }
}

@Suite(.onOwnThreads) struct PressureReaderTests {
  @Test func `page cache is subtracted from memory use`() throws {
    let kernel = try FakeKernel()
    try kernel.group("/a/b", limit: "1000000", used: 990_000, cache: 500_000)
    let sample = try kernel.reader().read()
    #expect(sample.share == 0.49)
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
    #expect(try kernel.reader().read().share == 0.7)
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
    for file in ["memory.max", "memory.current", "memory.stat"] {
      try kernel.group("/a/b", limit: "1000", used: 500)
      let reader = try kernel.reader()
      try kernel.write("sys/fs/cgroup/a/b/" + file, text: text)
      let isZero = file == "memory.current" && text == "0\n"
      #expect(reader.read().share == (isZero ? 0 : nil), "\(file)")
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
