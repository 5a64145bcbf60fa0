// SealedWorkersTests: what operators see of sealed workers, as root and as another user.

import Core
import Glibc
import TestSupport
import Testing

@Suite(
  .onOwnThreads, .ifSealable)
struct SealedWorkersTests {
  private let folder: TemporaryFolder
  /// Starts a program as if the kernel had no Landlock.
  private let withoutLandlock = [TestBuild.programFolder + "/attacker", "--without-landlock"]

  init() throws { folder = try TemporaryFolder() }

  private static let image = "/image?url=local:///a.png&format=webp"

  @Test func `the log and the figures tell how workers are sealed`() throws {
    let pictor = try PictorProcess(in: folder, ["--imaging.sandbox", "required"])
    let sandbox = try pictor.stats().imaging.sandbox
    #expect(sandbox.landlock > 0 && sandbox.seccomp == true)
    #expect(pictor.log.contains("imaging workers are sealed"))
  }

  @Test func `a sandbox that is off is a warning`() throws {
    let pictor = try PictorProcess(in: folder, ["--imaging.sandbox", "off"])
    let sandbox = try pictor.stats().imaging.sandbox
    #expect(sandbox.landlock == 0 && sandbox.seccomp == false)
    #expect(pictor.log.contains("imaging workers are not sealed"))
  }

  @Test func `without Landlock the other layers are used, unless all are required`() throws {
    // When they are used if possible
    let pictor = try PictorProcess(in: folder, wrapper: withoutLandlock)
    // Then
    let sandbox = try pictor.stats().imaging.sandbox
    #expect(sandbox.landlock == 0 && sandbox.seccomp == true)
    #expect(pictor.log.contains("a layer is missing"))
    // When they are required
    for arguments in [[], ["--check-config"]] {
      let refused = try PictorProcess(
        in: folder,
        arguments + [
          "--server.port", "0", "--disk.path", folder.path + "/other", "--imaging.sandbox",
          "required",
        ], wrapper: withoutLandlock, isServer: false)
      // Then
      #expect(try refused.end(0) == 1)
      let line = "imaging.sandbox is required, and a layer is missing: Landlock"
      #expect(refused.complaints.count { $0.contains(line) } == 1, "\(refused.log)")
    }
  }

  @Test(.enabled(if: OtherUser.canRun, "needs root, and a toolchain that others may read"))
  func `an ordinary user's server keeps its secrets from its workers and reads its own figures`()
    throws
  {
    // Given a server of another user
    let programs = try OtherUser.programs(in: folder)
    try folder.write("a.png", bytes: TestImages.png(width: 32, height: 32))
    chmod(folder.path + "/a.png", 0o644)
    let pictor = try PictorProcess(
      in: folder, ["--imaging.sandbox", "required", "--sources.local_root", folder.path],
      wrapper: OtherUser.wrapper, programs: programs)
    // When
    #expect(try pictor.get(Self.image).status == 200)
    // Then its files in /proc belong to root, and so do a worker's
    let worker = try sealedWorker(of: pictor)
    for process in [pictor.id, worker] {
      #expect(owner(of: "/proc/\(process)/environ") == 0)
      #expect(contents(of: "/proc/\(process)/status").contains("Uid:\t\(OtherUser.id)\t"))
    }
    // A worker raises its own, which may be higher already.
    let own = Int(contents(of: "/proc/self/oom_score_adj").dropLast())
    #expect(contents(of: "/proc/\(worker)/oom_score_adj") == "\(max(900, try #require(own)))\n")
    // And it still reads what it tells of itself
    let stats = try pictor.stats()
    #expect(stats.process.residentBytes > 1 << 20)
    #expect(stats.process.descriptors > 8)
    #expect(stats.process.threads > 4)
    #expect(stats.imaging.residentBytes > 1 << 20)
    #expect(stats.imaging.workersLost == 0)
  }

  @Test func `a worker has its own session and narrow limits`() throws {
    let pictor = try PictorProcess(in: folder)
    let worker = try sealedWorker(of: pictor)
    #expect(getpgid(worker) == worker)
    #expect(getsid(worker) == worker)
    let limits = contents(of: "/proc/\(worker)/limits")
    #expect(limits.contains(try Regex("Max open files +16 +16 ")))
    #expect(limits.contains(try Regex("Max core file size +[01] +[01] ")))
    #expect(!limits.contains(try Regex("Max processes +unlimited ")))
    let status = contents(of: "/proc/\(worker)/status")
    #expect(status.contains("NoNewPrivs:\t1"))
    #expect(status.contains("Seccomp:\t2"))
  }

  @Test(.ifClosedProcessesAreVisible)
  func `a worker gets no library path and no secret of the server's environment`() throws {
    // Given a server whose libraries an attacker of its environment may choose
    let pictor = try PictorProcess(
      in: folder,
      environment: [
        "LD_LIBRARY_PATH": folder.path, "LD_BIND_NOW": "1",
        "PICTOR_ADMIN_TOKENS": "an-operators-secret",
      ])
    #expect(contents(of: "/proc/\(pictor.id)/environ").contains("LD_LIBRARY_PATH=\(folder.path)"))
    // Then
    let environment = contents(of: "/proc/\(try sealedWorker(of: pictor))/environ")
    let names = environment.split(separator: "\0").map { $0.prefix { $0 != "=" } }
    #expect(Set(names) == ["SWIFT_BACKTRACE", "MALLOC_ARENA_MAX", "G_SLICE", "OMP_NUM_THREADS"])
  }

  /// Returns a sealed worker; others may still start. In a container, all programs have filters.
  private func sealedWorker(of pictor: PictorProcess) throws -> pid_t {
    var found: pid_t?
    try blockUntil("a worker is sealed") {
      found = pictor.workers().first { filters(of: "\($0)") > filters(of: "self") }
      return found != nil
    }
    return try #require(found)
  }

  /// The number of a process's seccomp filters (proc_pid_status(5)).
  private func filters(of process: String) -> Int {
    let lines = contents(of: "/proc/\(process)/status").split(separator: "\n")
    let line = lines.first { $0.hasPrefix("Seccomp_filters:\t") }
    return line.flatMap { Int($0.dropFirst("Seccomp_filters:\t".count)) } ?? 0
  }

  private func owner(of path: String) -> uid_t? {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_uid : nil
  }
}
