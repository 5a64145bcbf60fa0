// ReloadTests: SIGHUP applies each kind of live key to the next request, also on open connections.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class ReloadTests: OriginSuite {
  private let proxied: KeyValuePairs = ["X-Forwarded-For": "198.51.100.7"]

  override init() throws {
    try super.init()
    let image = try TestImages.jpeg(width: 60, height: 40)
    for number in 0..<10 { origin.serve("/\(number).jpg", bytes: image) }
  }

  private var file: String { folder.path + "/pictor.json5" }

  private func start(_ configuration: String) throws -> PictorProcess {
    try write(configuration)
    return try PictorProcess(
      in: folder, ["--config", file, "--server.trusted_proxies", "127.0.0.0/8"])
  }

  private func write(_ configuration: String) throws {
    try Data(configuration.utf8).write(to: URL(fileURLWithPath: file), options: .atomic)
  }

  private func reload(
    _ pictor: PictorProcess, _ configuration: String,
    says: String = "the configuration was reloaded"
  ) throws {
    func count() -> Int { pictor.log.split(separator: "\n").count { $0.contains(says) } }
    let before = count()
    try write(configuration)
    kill(pictor.id, SIGHUP)
    try blockUntil("\(says): \(pictor.log.suffix(500))") { count() > before }
  }

  private func signed(_ target: String, _ secret: String) -> String {
    let parts = target.split(separator: "?", maxSplits: 1)
    let signer = URLSigner(keys: [SigningKey(id: "main", secret: secret)])
    let text = SignedText(path: String(parts[0]), query: parts[1].utf8)
    return target + "&sig=" + (text.flatMap { signer.sign($0) } ?? "")
  }

  @Test func `presets change for the next request, and what is cached keeps its key`() throws {
    let pictor = try start("{ presets: { thumb: 'w=30' } }")
    let client = try pictor.connect()
    let preset = origin.target("/0.jpg", adding: "&preset=thumb")
    let wide = try client.get(origin.target("/0.jpg", adding: "&w=30"))
    #expect(try client.get(preset)["etag"] == wide["etag"])
    #expect(try client.get(origin.target("/0.jpg", adding: "&preset=new")).status == 400)
    try reload(pictor, "{ presets: { thumb: 'w=20', new: 'w=30' } }")
    // The old connection and a new one.
    for client in [client, try pictor.connect()] {
      let narrow = try client.get(origin.target("/0.jpg", adding: "&w=20"))
      #expect(narrow["etag"] != wide["etag"])
      #expect(try client.get(preset)["etag"] == narrow["etag"])
      let same = try client.get(origin.target("/0.jpg", adding: "&preset=new"))
      #expect(same["etag"] == wide["etag"] && same["cache-status"]?.contains("hit") == true)
    }
  }

  @Test func `signing, hosts, limits, fields and the log change for the next request`() throws {
    let first = "s3cr3t-s3cr3t-s3cr3t-s3cr3t-one1"
    let second = "s3cr3t-s3cr3t-s3cr3t-s3cr3t-two2"
    let pictor = try start("{}")
    let client = try pictor.connect()
    let hit = origin.target("/0.jpg", adding: "&w=30")
    for _ in 0..<3 { #expect(try client.get(hit).status == 200) }
    // Signatures, also for what is in memory and was parsed before
    try reload(pictor, "{ signing: { mode: 'required', keys: ['main:\(first)'] } }")
    #expect(try client.get(hit).status == 403)
    #expect(try client.get(signed(hit, first)).status == 200)
    try reload(pictor, "{ signing: { mode: 'required', keys: ['main:\(second)'] } }")
    #expect(try client.get(signed(hit, first)).status == 403)
    #expect(try client.get(signed(hit, second)).status == 200)
    // Lists of hosts
    try reload(pictor, "{ download: { deny_hosts: ['127.0.0.1'] } }")
    #expect(try client.get(origin.target("/1.jpg")).status == 403)
    try reload(pictor, "{}")
    #expect(try client.get(origin.target("/2.jpg")).status == 200)
    // Limits
    try reload(pictor, "{ download: { maximum_bytes: '10B' } }")
    #expect(try client.get(origin.target("/3.jpg")).status == 413)
    try reload(pictor, "{ imaging: { maximum_pixels: 100 } }")
    #expect(try client.get(origin.target("/3.jpg")).status == 422)
    try reload(pictor, "{ server: { requests_per_second: 1 } }")
    #expect(try client.get(origin.target("/3.jpg")).status == 200)
    let statuses = try (0..<11).map { _ in try client.get(hit, headers: proxied).status }
    #expect(statuses.first == 200 && statuses.contains(429))
    // Fields of hits that were prepared before, and lines of the log
    #expect(try client.get(hit)["access-control-allow-origin"] == nil)
    try reload(
      pictor, "{ server: { cors_origin: ['https://a.example'] }, log: { requests: 'all' } }")
    let answer = try client.get(hit)
    #expect(answer["access-control-allow-origin"] == "https://a.example")
    #expect(answer["cache-status"]?.contains("hit; detail=memory") == true)
    let id = try #require(answer["x-request-id"])
    try blockUntil("the hit is logged") { pictor.log.contains(id) }
    #expect(!pictor.log.contains("keys that need a restart"))
    #expect(!pictor.log.contains("s3cr3t"))
  }

  @Test func `rules of hosts, formats, proxies and the access log change for the next request`()
    throws
  {
    let log = "log: { requests: 'all', access_format: 'combined' }"
    try write("{ log: { requests: 'all' } }")
    let pictor = try PictorProcess(in: folder, ["--config", file])
    let client = try pictor.connect()
    func image(_ number: Int, _ query: String) -> String {
      origin.target("/\(number).jpg?\(query)", adding: "&w=30")
    }
    #expect(try client.get(image(0, "t=1"), headers: proxied).status == 200)
    #expect(try client.get(image(0, "t=2"))["cache-status"]?.contains("hit") == false)
    try reload(
      pictor,
      "{ hosts: [{ host: '127.0.0.1', drop_parameters: ['t'], headers: { 'X-Key': 'one' } }], "
        + "server: { trusted_proxies: ['127.0.0.0/8'] }, \(log) }")
    #expect(try client.get(image(1, "t=1"), headers: proxied).status == 200)
    #expect(try client.get(image(1, "t=2"))["cache-status"]?.contains("hit") == true)
    #expect(origin.received(at: "/1.jpg").last?.headers["x-key"] == "one")
    try blockUntil("the client is named: \(pictor.log.suffix(500))") {
      pictor.log.contains("198.51.100.7 - - [")
    }
    #expect(pictor.log.split(separator: "\n").count { $0.contains("198.51.100.7") } == 1)
    // Formats, and the folder of local files
    #expect(try client.get("/image?url=local:///a.jpg&w=30").status == 403)
    try Data(try TestImages.jpeg(width: 60, height: 40)).write(
      to: URL(fileURLWithPath: folder.path + "/a.jpg"))
    try reload(pictor, "{ sources: { local_root: '\(folder.path)' } }")
    #expect(try client.get("/image?url=local:///a.jpg&w=30").status == 200)
    try reload(pictor, "{ imaging: { formats: ['png'] } }")
    #expect(try client.get(image(2, "t=1")).status == 415)
    try reload(pictor, "{ imaging: { formats: ['png', 'jpeg'] } }")
    #expect(try client.get(image(2, "t=1")).status == 200)
    #expect(!pictor.log.contains("keys that need a restart"))
  }

  @Test func `running requests are not broken, and keys that need a restart are named`() throws {
    let pictor = try start("{}")
    let gate = Gate()
    let image = try TestImages.jpeg(width: 30, height: 20)
    origin.route("/slow.jpg", to: .ok(image, holdingAfter: 0, at: gate))
    let client = try pictor.ask(origin.target("/slow.jpg"))
    try pictor.waitFor("the download runs") { $0.downloads.running == 1 }
    try reload(
      pictor,
      "{ signing: { mode: 'required', keys: ['main:s3cr3t-s3cr3t-s3cr3t-s3cr3t-one1'] }, "
        + "download: { deny_hosts: ['127.0.0.1'], limit: 1 }, memory: { limit: '1MiB' } }")
    try blockUntil("the key is named") {
      pictor.log.split(separator: "\n").contains {
        $0.contains("keys that need a restart") && $0.contains("\"memory.limit\"")
      }
    }
    gate.open()
    #expect(try client.readAnswer().status == 200)
    #expect(try client.get(origin.target("/slow.jpg")).status == 403)
  }

  @Test func `a mistake changes nothing`() throws {
    let pictor = try start("{ presets: { thumb: 'w=30' } }")
    let client = try pictor.connect()
    for wrong in [
      "{ presets: { new: 'w=0' } }", "{ presets: { new: 'w=20' }, disk: { limit: -1 } }",
    ] {
      try reload(pictor, wrong, says: "the configuration was not reloaded")
      #expect(try client.get(origin.target("/0.jpg", adding: "&preset=new")).status == 400)
      #expect(try client.get(origin.target("/0.jpg", adding: "&preset=thumb")).status == 200)
    }
    #expect(pictor.log.contains("presets.new") && pictor.log.contains("disk.limit"))
  }
}
