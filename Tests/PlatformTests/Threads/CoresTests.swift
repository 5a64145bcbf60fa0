// CoresTests: the cores on which threads may run.

import Glibc
import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct CoresTests {
  /// Starts a program that waits, and ends it after the test.
  private func withChild(_ body: (pid_t) throws -> Void) throws {
    let child = try ChildProcess(["sleep", "60"])
    defer { child.kill() }
    try body(child.id)
  }

  @Test func `a process is confined to each of its cores, and freed`() throws {
    let all = try Cores.allowed()
    #expect(!all.numbers.isEmpty && all.numbers == all.numbers.sorted())
    try withChild { child in
      #expect(try Cores.allowed(for: child) == all)
      for number in all.numbers {
        try Cores([number]).confine(child)
        #expect(try Cores.allowed(for: child).numbers == [number])
      }
      try all.confine(child)
      #expect(try Cores.allowed(for: child) == all)
    }
  }

  @Test func `no core, and cores that the machine lacks, are errors`() throws {
    try withChild { child in
      #expect(throws: SystemError(EINVAL)) { try Cores([]).confine(child) }
      #expect(throws: SystemError(EINVAL)) { try Cores([8_191]).confine(child) }
      #expect(throws: SystemError(EINVAL)) { try Cores([-1, 100_000]).confine(child) }
    }
  }

  @Test func `a process that has ended has no threads to confine`() throws {
    var ended = pid_t()
    try withChild { ended = $0 }
    try Cores.allowed().confine(ended)
    #expect(throws: SystemError(ESRCH)) { try Cores.allowed(for: ended) }
  }

  /// The folder of the calling thread (proc_thread-self(5)).
  private static var ownFolder: String {
    var link = [CChar](repeating: 0, count: 100)
    let count = readlink("/proc/thread-self", &link, link.count)
    let name = link.prefix(max(count, 0)).map(UInt8.init(bitPattern:))
    return "/proc/" + String(decoding: name, as: UTF8.self)
  }

  @Test func `a thread is confined to each core, and what it starts is not`() throws {
    let all = try Cores.allowed(for: getpid())
    for number in all.numbers {
      let (isConfined, folder) = (Lock(false), Lock(""))
      defer { isConfined.withLock { $0 = true } }
      let found = Lock<[Cores?]>([])
      let thread = try OwnThread(name: "test-confined", rank: nil) {
        folder.withLock { $0 = Self.ownFolder }
        while !isConfined.withLock({ $0 }) { usleep(1_000) }
        found.withLock { $0.append(try? Cores.allowed()) }
        let other = try? OwnThread(name: "test-started", rank: nil) {
          found.withLock { $0.append(try? Cores.allowed()) }
        }
        other?.join()
      }
      try thread.confine(to: Cores([number]))
      #expect(throws: SystemError(EINVAL)) { try thread.confine(to: Cores([8_191])) }
      isConfined.withLock { $0 = true }
      try blockUntil("it has ended") {
        let folder = folder.withLock { $0 }
        return !folder.isEmpty && access(folder, F_OK) < 0
      }
      #expect(found.withLock { $0 } == [Cores([number]), all])
      // No thread, and not the calling one instead.
      try thread.confine(to: Cores([number]))
      #expect(try Cores.allowed() == all)
      thread.join()
      try thread.confine(to: Cores([number]))
      #expect(try Cores.allowed() == all)
    }
  }

  @Test(
    arguments: [
      ("max 100000\n", "max 100000\n", nil), ("150000 100000\n", "max 100000\n", 1.5),
      ("400000 100000\n", "50000 100000\n", 0.5), ("0 0\n", "broken\n", nil),
    ] as [(String, String, Double?)])
  func `the quota is the least of the control groups`(
    outer: String, inner: String, quota: Double?
  ) throws {
    let root = try TemporaryFolder()
    for folder in ["proc", "proc/self", "sys", "sys/g", "sys/g/own"] {
      mkdir(root.path + "/" + folder, 0o755)
    }
    try root.write("proc/self/cgroup", bytes: Array("0::/g/own\n".utf8))
    try root.write(
      "proc/self/mountinfo", bytes: Array("30 23 0:26 / /sys rw - cgroup2 cgroup2 rw\n".utf8))
    try root.write("sys/g/cpu.max", bytes: Array(outer.utf8))
    try root.write("sys/g/own/cpu.max", bytes: Array(inner.utf8))
    #expect(Cores.quota(root: root.path) == quota)
  }

  @Test(
    arguments: [
      (4, nil, 4), (4, 1.5, 2), (4, 0.2, 1), (2, 64, 2), (1, 1e18, 1),
    ] as [(Int, Double?, Int)])
  func `a quota limits the cores, rounded up`(count: Int, quota: Double?, usable: Int) {
    #expect(Cores.usable(of: count, quota: quota) == usable)
  }

  @Test func `the time of a thread is what it used, until it is joined`() throws {
    let isOver = Lock(false)
    let thread = try OwnThread(name: "test-busy", rank: .foreground) {
      while !isOver.withLock({ $0 }) {}
    }
    try blockUntil { thread.processorTime ?? .zero > .milliseconds(5) }
    isOver.withLock { $0 = true }
    thread.join()
    #expect(thread.processorTime == nil)
  }
}
