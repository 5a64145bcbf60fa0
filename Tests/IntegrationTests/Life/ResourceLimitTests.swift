// ResourceLimitTests: the program under hard resource limits (setrlimit(2)).

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class ResourceLimitTests: OriginSuite {
  /// Starts a server under hard limits, given as options of prlimit(1).
  private func pictor(_ limits: String...) throws -> PictorProcess {
    try PictorProcess(in: folder, wrapper: ["/usr/bin/prlimit"] + limits)
  }

  @Test func `without core files or with a file size limit, the server serves images`() throws {
    // Given: workers lower these limits themselves
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    let pictor = try pictor("--core=0:0", "--fsize=10000000:10000000")
    // Then
    #expect(try pictor.get(origin.target("/a.jpg", adding: "&w=30")).status == 200)
  }

  @Test(arguments: ["--nofile=32:32", "--nofile=64:64"])
  func `too few open files are reported in one error with exit status 1`(limit: String) throws {
    // When
    let pictor = try PictorProcess(
      in: folder, ["--server.port", "0", "--disk.path", folder.path + "/cache"],
      wrapper: ["/usr/bin/prlimit", limit], isServer: false)
    // Then
    #expect(try pictor.end(0) == 1)
    let complaints = pictor.complaints
    #expect(complaints.count == 1 && complaints[0].contains("ulimit -n"), "\(pictor.log)")
  }

  @Test func `with few open files the server serves images`() throws {
    // Given
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    let pictor = try PictorProcess(
      in: folder, ["--server.workers", "2", "--imaging.workers", "2"],
      wrapper: ["/usr/bin/prlimit", "--nofile=108:108"])
    let clients = try (0..<16).map { _ in try pictor.connect() }
    // When
    for (number, client) in clients.enumerated() {
      try client.send(
        HTTPClient.text("GET", target: origin.target("/a.jpg", adding: "&w=\(number + 10)")))
    }
    // Then
    for client in clients { #expect(try client.readAnswer().status == 200) }
  }

  @Test func `a low soft limit of open files is raised to the hard one`() throws {
    // Given: more clients than the soft limit has room for
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    let pictor = try pictor("--nofile=64:4096")
    let limits = contents(of: "/proc/\(pictor.id)/limits").split(separator: "\n")
    let files = limits.first { $0.hasPrefix("Max open files") }?.split(separator: " ")
    #expect(files?.suffix(3) == ["4096", "4096", "files"])
    // When
    let clients = try (0..<100).map { _ in try pictor.connect() }
    for client in clients {
      try client.send(HTTPClient.text("GET", target: origin.target("/a.jpg", adding: "&w=30")))
    }
    // Then
    for client in clients { #expect(try client.readAnswer().status == 200) }
  }

  @Test func `a file above the size limit is an error, and the server continues`() throws {
    // Given: an image above the limit and one far below. The sanitizer maps a file of 512 KiB.
    let limit = 1_000_000
    let large = try TestImages.jpeg(width: 60, height: 40) + [UInt8](repeating: 0, count: limit)
    origin.serve("/large.jpg", bytes: large)
    origin.serve("/small.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    let pictor = try pictor("--fsize=\(limit):\(limit)")
    kill(pictor.id, SIGXFSZ)
    // Then
    #expect(try pictor.get(origin.target("/large.jpg")).status == 500)
    #expect(try pictor.get(origin.target("/small.jpg")).status == 200)
    #expect(try pictor.end() == 0)
  }
}
