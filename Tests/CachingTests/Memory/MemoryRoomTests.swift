// MemoryRoomTests: the available memory, read from folders like the kernel's.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct MemoryRoomTests {
  private static let version1 =
    "9:name=systemd:/\n4:cpu,memory:/docker/abc\n"
  private static let mounts1 =
    "30 1 0:26 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"

  private func kernel(cgroup: String = "0::/a/b\n", mounts: String? = nil) throws -> FakeKernel {
    let kernel = try mounts.map { try FakeKernel(cgroup: cgroup, mounts: $0) } ?? FakeKernel()
    try kernel.write("proc/meminfo", text: "MemTotal:       8000000 kB\nMemFree: 5 kB\n")
    return kernel
  }

  @Test func `without a limit, the available memory is the machine's`() throws {
    let kernel = try kernel()
    #expect(MemoryRoom.bytes(root: kernel.folder.path) == 8_000_000 * 1_024)
    try kernel.group("/a/b", limit: "max", used: 5)
    #expect(MemoryRoom.bytes(root: kernel.folder.path) == 8_000_000 * 1_024)
  }

  @Test func `in cgroup v2, the lowest limit of the group and its ancestors counts`() throws {
    let kernel = try kernel()
    try kernel.group("/a/b", limit: "900000000", used: 5)
    #expect(MemoryRoom.bytes(root: kernel.folder.path) == 900_000_000)
    try kernel.group("/a", limit: "500000000", used: 5)
    #expect(MemoryRoom.bytes(root: kernel.folder.path) == 500_000_000)
    try kernel.write("sys/fs/cgroup/a/b/memory.high", text: "300000000\n")
    #expect(MemoryRoom.bytes(root: kernel.folder.path) == 300_000_000)
  }

  @Test func `in cgroup v1, the memory controller's own tree counts`() throws {
    let kernel = try kernel(cgroup: Self.version1, mounts: Self.mounts1)
    let place = "sys/fs/cgroup/memory"
    // The kernel writes the greatest multiple of the page size for "no limit".
    try kernel.write(place + "/memory.limit_in_bytes", text: "9223372036854771712\n")
    #expect(MemoryRoom.bytes(root: kernel.folder.path) == 8_000_000 * 1_024)
    try kernel.write(place + "/docker/abc/memory.limit_in_bytes", text: "536870912\n")
    #expect(MemoryRoom.bytes(root: kernel.folder.path) == 512 << 20)
  }

  @Test func `a container that sees its own group at the mount's root belongs to it`() throws {
    let kernel = try kernel(
      cgroup: Self.version1,
      mounts: "30 1 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n")
    try kernel.write("sys/fs/cgroup/memory/memory.limit_in_bytes", text: "314572800\n")
    #expect(MemoryRoom.bytes(root: kernel.folder.path) == 300 << 20)
  }

  @Test func `without any kernel files there is no bound`() throws {
    #expect(MemoryRoom.bytes(root: try TemporaryFolder().path) == .max)
    // And on this machine.
    #expect((1 << 20..<Int.max).contains(MemoryRoom.bytes()))
  }
}
