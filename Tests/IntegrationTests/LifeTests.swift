// The server's life: starts that fail in one line, clean ends, and what survives a restart.

import Glibc
import Model
import TestSupport
import Testing

@Suite(.onThreadsOfTheirOwn) struct LifeTests {
  private let folder: TemporaryFolder
  private let origin: Origin

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
  }

  @Test func `what was made and what was loaded survive a restart`() throws {
    origin.serve("/a.jpg", try Pictures.jpeg(width: 300, height: 200))
    var pictor = try PictorProcess(in: folder)
    let before = try pictor.get(origin.target("/a.jpg", "&w=100"))
    #expect(try pictor.end() == 0)

    pictor = try PictorProcess(in: folder)
    let after = try pictor.get(origin.target("/a.jpg", "&w=100"))
    #expect(after["cache-status"] == "pictor; hit; detail=disk")
    #expect(after.body == before.body)
    #expect(after["etag"] == before["etag"])
    let other = try pictor.get(origin.target("/a.jpg", "&w=50"))
    #expect(other["cache-status"] == "pictor; hit; detail=source")
    #expect(origin.requests(to: "/a.jpg") == 1)
    let memory = try pictor.get(origin.target("/a.jpg", "&w=100"))
    #expect(memory["cache-status"] == "pictor; hit; detail=memory")
  }

  @Test func `a damaged file is a miss and never an answer`() throws {
    origin.serve("/a.jpg", try Pictures.jpeg(width: 300, height: 200))
    var pictor = try PictorProcess(in: folder)
    let before = try pictor.get(origin.target("/a.jpg", "&w=100"))
    #expect(try pictor.end() == 0)
    let files = TemporaryFolder.files(below: folder.path + "/cache").filter { size(of: $0) > 500 }
    #expect(files.count == 2)
    for file in files { flipByte(in: file, at: size(of: file) - 100) }

    pictor = try PictorProcess(in: folder)
    let after = try pictor.get(origin.target("/a.jpg", "&w=100"))
    #expect(after.status == 200)
    #expect(after["cache-status"] == "pictor; fwd=uri-miss; fwd-status=200; stored")
    #expect(after.body == before.body)
    #expect(try pictor.stats().disk.damaged == 2)
  }

  @Test func `the limits of memory and disk hold`() throws {
    let pictor = try PictorProcess(
      in: folder,
      ["--memory.limit", "200KiB", "--disk.limit", "1MiB", "--download.limit_per_host", "64"])
    origin.route("/a.png") { _ in .ok((try? Pictures.png(width: 100, height: 100)) ?? []) }
    let client = try pictor.connect()
    for number in 0..<100 {
      let answer = try client.get(origin.target("/a.png?\(number)", "&format=png"))
      #expect(answer.status == 200)
      if number.isMultiple(of: 10) {
        #expect(TemporaryFolder.diskUsage(of: folder.path + "/cache") <= 1 << 20)
      }
    }
    let stats = try pictor.stats()
    #expect(stats.memory.bytes <= 200 << 10 && stats.memory.evictions > 0)
    #expect(stats.disk.bytes <= 1 << 20)
    #expect(TemporaryFolder.diskUsage(of: folder.path + "/cache") <= 1 << 20)
  }

  @Test func `the count limit of memory holds, and stats tell of its pressure unless it is off`()
    throws
  {
    origin.serve("/a.jpg", try Pictures.jpeg(width: 30, height: 20))
    for (pressure, isOff) in [("0", true), ("0.9", false)] {
      let pictor = try PictorProcess(
        in: folder, ["--memory.count_limit", "2", "--memory.pressure", pressure])
      for width in 1...5 {
        #expect(try pictor.get(origin.target("/a.jpg", "&w=\(width)")).status == 200)
      }
      let memory = try pictor.stats().memory
      #expect(memory.entries == 2)
      // Where the kernel tells nothing, there is nothing to tell.
      #expect(!isOff || memory.pressure == nil)
      #expect(memory.pressure.map { $0.limit <= memory.limit } ?? true)
      #expect(try pictor.end() == 0)
    }
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func `a stop lets running requests finish and exits 0`(signal: CInt) throws {
    let pictor = try PictorProcess(in: folder)
    let gate = Gate()
    origin.route("/a.jpg", .hold(gate, then: .ok(try Pictures.jpeg(width: 30, height: 20))))
    let idle = try pictor.connect()
    #expect(try idle.get("/stats").status == 200)
    let client = try pictor.connect()
    try client.send(HTTPClient.text("GET", origin.target("/a.jpg")))
    try pictor.waitFor("the download runs") { $0.downloads.running == 1 }
    kill(pictor.id, signal)
    // Over the connection that was there before: it drains, and says so.
    var draining = try idle.get("/stats")
    for _ in 0..<500 where draining.status == 200 {
      usleep(5_000)
      draining = try idle.get("/stats")
    }
    #expect(draining.status == 503 && draining.text.contains("draining"))
    gate.open()
    let answer = try client.readAnswer()
    #expect(answer.status == 200)
    #expect(try pictor.end(0) == 0)
    #expect(pictor.workers().isEmpty)
  }

  @Test func `what does not finish within the grace time is answered and ended`() throws {
    let pictor = try PictorProcess(in: folder, ["--server.grace_time", "200ms"])
    origin.route("/a.jpg", .silence)
    let client = try pictor.connect()
    try client.send(HTTPClient.text("GET", origin.target("/a.jpg")))
    try pictor.waitFor("the download runs") { $0.downloads.running == 1 }
    kill(pictor.id, SIGTERM)
    let answer = try client.readAnswer()
    #expect(answer.status == 503 && answer.text.contains("draining"))
    #expect(try pictor.end(0) == 0)
  }

  @Test func `a crowd that leaves at once gives its places back`() throws {
    let pictor = try PictorProcess(
      in: folder, ["--server.connections", "256", "--server.header_timeout", "60s"])
    _ = openFilesAllow(1_000)
    for _ in 0..<3 {
      var crowd = try (0..<700).map { _ in try pictor.connect() }
      usleep(200_000)
      crowd.removeAll()
    }
    try pictor.waitFor("everyone is gone") { $0.requests.connections <= 1 }
  }

  @Test func `a port in use is one clear line and exit 1`() throws {
    let pictor = try PictorProcess(
      in: folder,
      ["--server.port", "\(origin.port)", "--disk.path", folder.path + "/cache"], isServer: false)
    #expect(try pictor.end(0) == 1)
    #expect(pictor.complaints.count == 1)
    #expect(
      pictor.complaints.first?.contains("127.0.0.1:\(origin.port)") == true, "\(pictor.log)")
    #expect(pictor.complaints.first?.contains("in use") == true)
  }

  @Test(arguments: ["/proc/pictor", "/dev/null/cache"])
  func `an unusable cache folder is one clear line and exit 1`(path: String) throws {
    let pictor = try PictorProcess(
      in: folder, ["--server.port", "0", "--disk.path", path], isServer: false)
    #expect(try pictor.end(0) == 1)
    #expect(pictor.complaints.count == 1)
    #expect(pictor.complaints.first?.contains(path) == true, "\(pictor.log)")
  }

  @Test func `a missing configuration file is one clear line and exit 1`() throws {
    let pictor = try PictorProcess(
      in: folder, ["--config", folder.path + "/absent.json5"], isServer: false)
    #expect(try pictor.end(0) == 1)
    #expect(
      pictor.complaints
        == ["pictor: \(folder.path)/absent.json5: cannot be read: No such file or directory"])
  }

  @Test func `the environment configures, and the health check asks`() throws {
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

  @Test func `a server that logs nothing serves all the same`() throws {
    let free = try Origin()
    free.stop()
    let pictor = try PictorProcess(
      in: folder,
      [
        "--server.port", "\(free.port)", "--disk.path", folder.path + "/cache", "--log.level",
        "error",
      ], isServer: false)
    var status: Int?
    for _ in 0..<1_000 where status == nil {
      status = try? HTTPClient(port: free.port).get("/stats").status
      usleep(10_000)
    }
    #expect(status == 200)
    #expect(try pictor.end() == 0)
    #expect(pictor.log.isEmpty)
  }

  @Test(arguments: [
    (["--version"], "pictor \(pictorVersion)\n"),
    (["--check-config"], "the configuration can be used\n"),
  ])
  func `the small commands answer and end`(options: [String], output: String) throws {
    let pictor = try PictorProcess(in: folder, options, isServer: false)
    #expect(try pictor.end(0) == 0)
    #expect(pictor.log == output)
  }

  private func size(of path: String) -> Int {
    var status = stat()
    return stat(path, &status) == 0 ? Int(status.st_size) : 0
  }

  private func flipByte(in path: String, at offset: Int) {
    let descriptor = open(path, O_RDWR)
    defer { close(descriptor) }
    var byte: UInt8 = 0
    pread(descriptor, &byte, 1, offset)
    byte ^= 0x55
    pwrite(descriptor, &byte, 1, offset)
  }
}
