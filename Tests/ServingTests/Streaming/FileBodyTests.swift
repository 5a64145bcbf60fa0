// FileBodyTests: a stalled disk delays the responses from its own files and nothing else.

import Core
import Glibc
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct FileBodyTests {
  private let content = (0..<1_500_000).map { UInt8(truncatingIfNeeded: $0 / 7) }
  private let fileTarget = "/image?url=https%3A%2F%2Fexample.org%2Flarge.png"

  /// A provider with a miss in a file on disk and a hit in memory.
  private func provider(_ folder: TemporaryFolder) throws -> TestProvider {
    let path = folder.path + "/large"
    try folder.write("large", bytes: [1, 2, 3] + content)
    let count = content.count
    let provider = TestProvider { request throws(ImageError) in
      let region = FileRegion(owning: open(path, O_RDONLY | O_CLOEXEC), offset: 3, count: count)
      return ImageDelivery(
        variant: Variant(key: request.key, info: makeInfo(), body: .file(region)),
        cacheStatus: .hit(.disk), timings: Timings())
    }
    provider.keep(makeVariant(try makeRequest().key))
    return provider
  }

  /// File access that finds nothing in the page cache.
  private var uncached: FileAccess {
    var access = FileAccess()
    access.readAtOnce = { _, _, _ in
      errno = EAGAIN
      return -1
    }
    return access
  }

  /// Returns whether files in the folder are on disk; a tests' folder may be in memory.
  private func isOnDisk(_ folder: TemporaryFolder) throws -> Bool {
    try folder.write("probe", bytes: [1])
    return !FileRegion(owning: open(folder.path + "/probe", O_RDONLY), count: 1).isInMemory
  }

  @Test func `while the disk does not respond, hits of the same event loop are answered`()
    async throws
  {
    // Given a server with one event loop, and a file whose reads all wait
    let folder = try TemporaryFolder()
    try #require(try isOnDisk(folder), "the tests' folder is in memory")
    let mayRead = Semaphore()
    let reads = Counter()
    var access = uncached
    access.read = { [access] file, buffer, offset in
      reads.add()
      mayRead.wait()
      return access.read(file, buffer, offset)
    }
    try await withServer(
      try provider(folder),
      configure: { [access] configuration in
        configuration.workers = 1
        configuration.fileAccess = access
      }
    ) { server in
      // When a response has begun
      let waiting = try server.ask(fileTarget)
      try await eventually { reads.value == 1 }
      // Then other requests are answered
      let client = try HTTPClient(port: server.port, timeout: 10)
      for _ in 0..<10 { #expect(try client.get(imageTarget).body.count == 18_000) }
      #expect(reads.value == 1)
      // When the disk responds, once for each piece
      for _ in 0..<(content.count / FileBody.pieceLength + 1) { mayRead.post() }
      // Then the response arrives complete.
      #expect(try waiting.readAnswer().body == content)
    }
  }

  @Test func `a file is sent complete, cached or not, and counts as a disk response`()
    async throws
  {
    let folder = try TemporaryFolder()
    for access in [FileAccess(), uncached] {
      try await withServer(try provider(folder), configure: { $0.fileAccess = access }) { server in
        let client = try HTTPClient(port: server.port)
        for _ in 0..<3 {
          let answer = try client.get(fileTarget)
          #expect(answer.status == 200 && answer.body == content)
          #expect(answer["Content-Length"] == "\(content.count)")
        }
        let head = try client.head(fileTarget)
        #expect(head["Content-Length"] == "\(content.count)" && head.body.isEmpty)
        let same = try client.get(fileTarget, headers: ["If-None-Match": "\"0123abcd\""])
        #expect(same.status == 304 && same.body.isEmpty)
        #expect(server.figures.byOrigin["disk"] == 5)
      }
    }
  }

  @Test(arguments: [0, -1])
  func `a truncated or unreadable file ends the connection`(result: Int)
    async throws
  {
    let folder = try TemporaryFolder()
    try #require(try isOnDisk(folder), "the tests' folder is in memory")
    let reads = Counter()
    var access = uncached
    access.read = { [access] file, buffer, offset in
      reads.add()
      if reads.value == 1 { return access.read(file, buffer, offset) }
      errno = EIO
      return result
    }
    try await withServer(
      try provider(folder), configure: { [access] in $0.fileAccess = access }
    ) { server in
      let client = try server.ask(fileTarget)
      let all = try client.readToEnd()
      #expect(all.count > FileBody.pieceLength && all.count < content.count)
      #expect(reads.value == 2)
      // Then other requests are served.
      #expect(try HTTPClient(port: server.port).get(imageTarget).status == 200)
    }
  }
}
