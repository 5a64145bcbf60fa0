// StartTests: starts that fail with one error, and options that only print.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class StartTests: OriginSuite {
  @Test(arguments: ["folder", "symbolic link", "special file"])
  func `a lock that is not a regular file is reported in one error that says what to do`(
    kind: String
  )
    throws
  {
    // Given
    let cache = folder.path + "/cache"
    mkdir(cache, 0o700)
    switch kind {
    case "folder": mkdir(cache + "/lock", 0o700)
    case "symbolic link": symlink("/dev/null", cache + "/lock")
    default: mkfifo(cache + "/lock", 0o600)
    }
    // When
    let pictor = try PictorProcess(
      in: folder, ["--server.port", "0", "--disk.path", cache], isServer: false)
    // Then
    #expect(try pictor.end(0) == 1)
    #expect(
      pictor.complaints == [
        "pictor: '\(cache)/lock' is a \(kind) and must be a file: remove it, or name another folder in disk.path"
      ])
  }

  // The sanitizer reserves terabytes of addresses.
  @Test(
    .enabled(if: !TestBuild.isThreadSanitized),
    arguments: ["--as=300000000", "--as=500000000", "--as=900000000"])
  func `too little address space is reported in one error with exit status 1`(limit: String)
    throws
  {
    // When
    let pictor = try PictorProcess(
      in: folder, ["--server.port", "0", "--disk.path", folder.path + "/cache"],
      wrapper: ["/usr/bin/prlimit", limit], isServer: false)
    // Then
    #expect(try pictor.end(0) == 1)
    #expect(pictor.complaints.count == 1, "\(pictor.log)")
    #expect(pictor.complaints.first?.contains("ulimit -v") == true, "\(pictor.log)")
  }

  @Test func `environment variables configure the server, and healthcheck queries it`() throws {
    let pictor = try PictorProcess(
      in: folder, environment: ["PICTOR_MEMORY_LIMIT": "1MiB", "PICTOR_TYPO": "1"])
    #expect(try pictor.stats().memory.limit == 1 << 20)
    #expect(pictor.log.contains("PICTOR_TYPO"))
    let healthy = try PictorProcess(
      in: folder, ["healthcheck", "--server.port", "\(pictor.port)"], isServer: false)
    #expect(try healthy.end(0) == 0)
    #expect(try pictor.end() == 0)
    let dead = try PictorProcess(
      in: folder, ["healthcheck", "--server.port", "\(pictor.port)"], isServer: false)
    #expect(try dead.end(0) == 1)
  }

  @Test func `a server without log lines still serves`() throws {
    let free = try Origin()
    defer { withExtendedLifetime(free) {} }
    free.stop()
    let pictor = try PictorProcess(
      in: folder,
      [
        "--server.port", "\(free.port)", "--disk.path", folder.path + "/cache", "--log.level",
        "error",
      ], isServer: false)
    var status: Int?
    try blockUntil("it answers") {
      status = try? HTTPClient(port: free.port).get("/stats").status
      return status != nil
    }
    #expect(status == 200)
    #expect(try pictor.end() == 0)
    #expect(pictor.log.isEmpty)
  }

  @Test func `the version is one line, whatever else is configured`() throws {
    let pictor = try PictorProcess(
      in: folder, ["--version", "--server.port", "0", "--disk.path", folder.path + "/cache"],
      isServer: false)
    #expect(try pictor.end(0) == 0)
    #expect(pictor.log == "pictor \(pictorVersion)\n")
  }
}
