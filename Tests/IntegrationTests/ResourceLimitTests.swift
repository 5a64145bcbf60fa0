// ResourceLimitTests: the program under limits that its user may lower and not raise (setrlimit(2)).

import Glibc
import TestSupport
import Testing

@Suite(.onThreadsOfTheirOwn) struct ResourceLimitTests {
  private let folder: TemporaryFolder
  private let origin: Origin

  init() throws {
    (folder, origin) = (try TemporaryFolder(), try Origin())
  }

  /// Starts a server under hard limits, as options of prlimit(1).
  private func pictor(_ limits: String...) throws -> PictorProcess {
    try PictorProcess(in: folder, wrapper: ["/usr/bin/prlimit"] + limits)
  }

  @Test func `without core files, or with small files only, it serves images`() throws {
    // Given: workers lower these limits themselves
    origin.serve("/a.jpg", try Pictures.jpeg(width: 60, height: 40))
    let pictor = try pictor("--core=0:0", "--fsize=10000000:10000000")
    // Then
    #expect(try pictor.get(origin.target("/a.jpg", "&w=30")).status == 200)
  }

  @Test func `a file that becomes too large is an error, and does not end the server`() throws {
    // Given: one image beyond the limit, one far below it
    let limit = 400_000
    let large = try Pictures.jpeg(width: 60, height: 40) + [UInt8](repeating: 0, count: limit)
    origin.serve("/large.jpg", large)
    origin.serve("/small.jpg", try Pictures.jpeg(width: 60, height: 40))
    let pictor = try pictor("--fsize=\(limit):\(limit)")
    kill(pictor.id, SIGXFSZ)
    // Then
    #expect(try pictor.get(origin.target("/large.jpg")).status == 500)
    #expect(try pictor.get(origin.target("/small.jpg")).status == 200)
    #expect(try pictor.end() == 0)
  }
}
