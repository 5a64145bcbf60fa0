// LocalFilesTests: tests of LocalFiles and SourceLoader.

import Core
import Downloading
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct LocalFilesTests {
  private let folder: TemporaryFolder
  private let files: LocalFiles

  init() throws {
    folder = try TemporaryFolder()
    #expect(mkdir("\(folder.path)/root", 0o755) == 0)
    #expect(mkdir("\(folder.path)/root/sub", 0o755) == 0)
    try folder.write("secret", bytes: [9])
    try folder.write("root/a.jpg", bytes: [1, 2, 3])
    try folder.write("root/sub/b c.png", bytes: [4, 5])
    files = LocalFiles(root: folder.path + "/root", maximumBytes: 3, lifetime: 60)
  }

  private func failure(of text: String) async throws -> ImageError? {
    let url = try SourceURL(parsing: text)
    do {
      _ = try await files.load(url)
      return nil
    } catch { return error }
  }

  @Test
  func
    `when the root does not respond, a read times out, and the next one is refused as overloaded`()
    async throws
  {
    // Given
    let threads = BlockingThreads(name: "test-local", threads: 1, deadline: .seconds(1))
    let files = LocalFiles(root: folder.path + "/root", lifetime: 60, threads: threads)
    let url = try SourceURL(parsing: "local:///a.jpg")
    let isOver = Semaphore()
    let stuck = Task { try? await threads.value { isOver.wait() } }
    // Then
    let failure = await #expect(throws: ImageError.self) {
      while true { _ = try await files.load(url) }
    }
    #expect(failure?.status == 504 || failure?.status == 503)
    _ = await stuck.value
    let next = await #expect(throws: ImageError.self) { try await files.load(url) }
    #expect(next?.status == 503)
    isOver.post()
  }

  @Test(arguments: [
    ".env", ".git/config", "sub/.hidden", ".well-known/a.jpg", "..a.jpg", "%2eenv", "sub/%2Ehidden",
    "./a.jpg", "sub/../a.jpg", ".a/b c.png",
  ])
  func `hidden files and files in hidden folders do not exist`(path: String) async throws {
    // Given files of one byte
    for name in [".git", ".well-known", ".a"] {
      #expect(mkdir("\(folder.path)/root/\(name)", 0o755) == 0)
    }
    for name in [
      ".env", ".git/config", "sub/.hidden", ".well-known/a.jpg", "..a.jpg", ".a/b c.png",
    ] {
      try folder.write("root/" + name, bytes: [7])
    }
    // Then
    #expect(try await failure(of: "local:///\(path)") == .sourceNotFound(status: 404))
    #expect(try await failure(of: "local:///sub/b%20c.png") == nil)
  }

  @Test func `a file below the root is opened with its metadata`() async throws {
    // Given
    let moment = timespec(tv_sec: 784_111_777, tv_nsec: 5)
    let times = [moment, moment]
    #expect(utimensat(AT_FDCWD, "\(folder.path)/root/a.jpg", times, 0) == 0)
    // When
    let download = try await files.load(SourceURL(parsing: "local:///a.jpg"))
    // Then
    #expect(download.file.bytes == [1, 2, 3])
    var expected = OriginResponse(status: 200)
    expected.lastModified = "Sun, 06 Nov 1994 08:49:37 GMT"
    expected.etag = "\"\(String(784_111_777, radix: 16)).5-3\""
    expected.cacheControl = "max-age=60"
    #expect(download.origin == expected)
  }

  @Test func `a file has one version and one ETag until it changes`() async throws {
    let url = try SourceURL(parsing: "local:///a.jpg")
    let before = try await files.load(url)
    #expect(try await files.load(url).version == before.version && before.version != 0)
    try folder.write("root/a.jpg", bytes: [1, 2])
    let after = try await files.load(url)
    #expect(after.version != before.version && after.origin.etag != before.origin.etag)
  }

  @Test(arguments: [
    "local:///none.jpg", "local:///sub", "local:///sub/", "local:///a.jpg/b", "local:///../secret",
    "local:///sub/../../secret", "local:///%2e%2e/secret", "local:///sub/%2E%2E/%2E%2E/secret",
    "local:///..%2fsecret", "local:////etc/passwd",
  ])
  func `absent files, folders and paths outside the root are not found`(_ url: String) async throws
  {
    #expect(try await failure(of: url) == .sourceNotFound(status: 404))
  }

  @Test func `symbolic links below the root are never followed`() async throws {
    let root = folder.path + "/root"
    #expect(symlink("../secret", root + "/out") == 0)
    #expect(symlink("a.jpg", root + "/in") == 0)
    #expect(symlink("..", root + "/up") == 0)
    for path in ["out", "in", "up/secret"] {
      #expect(try await failure(of: "local:///" + path) == .sourceNotFound(status: 404))
    }
  }

  @Test func `the root itself may be a symbolic link`() async throws {
    #expect(symlink("root", folder.path + "/link") == 0)
    let files = LocalFiles(root: folder.path + "/link", lifetime: 0)
    #expect(try await files.load(SourceURL(parsing: "local:///a.jpg")).file.count == 3)
  }

  @Test func `pipes and devices are not found and do not block`() async throws {
    #expect(mkfifo(folder.path + "/root/pipe", 0o644) == 0)
    #expect(try await failure(of: "local:///pipe") == .sourceNotFound(status: 404))
    let devices = LocalFiles(root: "/dev", lifetime: 0)
    await #expect(throws: ImageError.sourceNotFound(status: 404)) {
      _ = try await devices.load(SourceURL(parsing: "local:///zero"))
    }
  }

  @Test func `a file that is empty or too large is refused`() async throws {
    try folder.write("root/large", bytes: [1, 2, 3, 4])
    try folder.write("root/empty", bytes: [])
    #expect(try await failure(of: "local:///large") == .sourceTooLarge(limit: 3))
    #expect(try await failure(of: "local:///empty") == .unsupportedFormat(detail: "empty file"))
  }

  @Test func `without a root, every local source is forbidden`() async throws {
    let off = LocalFiles(root: nil, lifetime: 0)
    let error = await #expect(throws: ImageError.self) {
      _ = try await off.load(SourceURL(parsing: "local:///a.jpg"))
    }
    #expect(error?.code == "forbidden_source")
    #expect(error?.message.hasSuffix("local sources are disabled") == true)
  }

  @Test func `each kind of source is loaded by its own loader`() async throws {
    let origin = try Origin()
    origin.serve("/a.jpg", bytes: [7])
    let loader = SourceLoader(remote: try makeDownloader(), local: files)
    let remote = try await loader.load(SourceURL(parsing: origin.url("/a.jpg")))
    let local = try await loader.load(SourceURL(parsing: "local:///a.jpg"))
    #expect(remote.file.bytes == [7])
    #expect(local.file.bytes == [1, 2, 3])
  }
}
