// The main task end to end: real program, real origin, real images.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class ServingImagesTests: OriginSuite {
  @Test func `an image is loaded, scaled, stored and served again`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 400, height: 300))

    let first = try pictor.get(origin.target("/a.jpg", adding: "&scale=0.5"))
    #expect(first.status == 200)
    #expect(first["content-type"] == "image/jpeg")
    #expect(first["cache-status"] == "pictor; fwd=uri-miss; fwd-status=200; stored")
    let image = try Pixels(decoding: first.body)
    #expect(image.size == PixelSize(width: 200, height: 150))
    #expect(image.psnr(to: .scene(width: 200, height: 150)) > 28)

    let second = try pictor.get(origin.target("/a.jpg", adding: "&scale=0.5"))
    #expect(second["cache-status"] == "pictor; hit; detail=memory")
    #expect(second.body == first.body)
    #expect(second["etag"] == first["etag"])
    #expect(origin.requests(to: "/a.jpg") == 1)
  }

  @Test func `Cache-Status does not claim stored when no tier is enabled`() throws {
    let pictor = try PictorProcess(in: folder, ["--memory.limit", "0", "--disk.limit", "0"])
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    for _ in 0..<2 {
      let answer = try pictor.get(origin.target("/a.jpg"))
      #expect(answer["cache-status"] == "pictor; fwd=uri-miss; fwd-status=200")
    }
  }

  @Test func `workers encode every output format and load encoders when needed`()
    throws
  {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 120, height: 80))
    for format in ImageFormat.outputs {
      let answer = try pictor.get(origin.target("/a.jpg", adding: "&format=\(format.rawValue)"))
      #expect(answer.status == 200 && answer["content-type"] == format.mediaType)
      #expect(answer["x-quality"] == nil)
      let likeness = try Pixels(decoding: answer.body).psnr(to: .scene(width: 120, height: 80))
      #expect(likeness > (format == .gif ? 24 : 28), "\(format)")
    }
    let full = try pictor.get(origin.target("/a.jpg", adding: "&format=webp")).body.count
    let limited = try pictor.get(
      origin.target("/a.jpg", adding: "&format=webp&maxbytes=\(full - 1)"))
    #expect(limited.status == 200 && limited.body.count < full)
    #expect((10..<79).contains(limited["x-quality"].flatMap { Int($0) } ?? 0))
  }

  @Test func `the file name determines the density, and a large image is scaled down`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/logo@2x.png", bytes: try TestImages.png(width: 80, height: 60))
    let plain = try pictor.get(origin.target("/logo@2x.png"))
    #expect(try Pixels(decoding: plain.body).size == PixelSize(width: 80, height: 60))
    #expect(plain["content-dpr"] == "2")
    let half = try pictor.get(origin.target("/logo@2x.png", adding: "&scale=1"))
    #expect(try Pixels(decoding: half.body).size == PixelSize(width: 40, height: 30))
    let limited = try pictor.get(
      origin.target("/logo@2x.png", adding: "&limitbytes=\(40 * 30 * 4)"))
    #expect(try Pixels(decoding: limited.body).size == PixelSize(width: 40, height: 30))
    #expect(limited["x-scaled-down"] == "80x60")
  }

  @Test func `a thousand concurrent clients cause one download and one rendering`() throws {
    let pictor = try PictorProcess(in: folder, ["--server.connections", "2000"])
    let gate = Gate()
    origin.route("/a.jpg", to: .hold(gate, then: .ok(try TestImages.jpeg(width: 300, height: 200))))
    let target = origin.target("/a.jpg", adding: "&w=100")
    let count = openFilesAllow(1_000)
    let clients = try (0..<count).map { _ in try pictor.connect(timeout: 120) }
    for client in clients { try client.send(HTTPClient.text("GET", target: target)) }
    try pictor.waitFor("all coalesced") { $0.flights.coalesced == count - 1 }
    gate.open()
    let answers = try clients.map { try $0.readAnswer() }
    #expect(answers.allSatisfy { $0.status == 200 && $0.body == answers[0].body })
    #expect(answers.count { $0["cache-status"]?.contains("collapsed") == true } == count - 1)
    #expect(origin.requests(to: "/a.jpg") == 1)
    #expect(try pictor.stats().imaging.succeeded == 1)
  }

  @Test func `killed workers lose no request`() throws {
    let pictor = try PictorProcess(in: folder, ["--imaging.workers", "1"])
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 3_000, height: 2_000))
    let client = try pictor.connect(timeout: 60)
    try client.send(HTTPClient.text("GET", target: origin.target("/a.jpg", adding: "&format=webp")))
    try pictor.waitFor("the job runs") { $0.imaging.running == 1 }
    for worker in pictor.workers() { kill(worker, SIGKILL) }
    let answer = try client.readAnswer()
    #expect(answer.status == 200)
    #expect(answer["content-type"] == "image/webp")
    #expect(try pictor.stats().imaging.workersLost == 1)
    #expect(try pictor.stats().imaging.workers == 1)
  }

  @Test(.ifClosedProcessesAreVisible)
  func `the server process never loads libvips`() throws {
    let pictor = try PictorProcess(in: folder, ["--imaging.workers", "2"])
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
    #expect(!contents(of: "/proc/\(pictor.id)/maps").contains("libvips"))
    let workers = try pictor.preparedWorkers(2)
    #expect(workers.allSatisfy { contents(of: "/proc/\($0)/maps").contains("libvips") })
  }

  @Test func `every part reports its figures`() throws {
    let pictor = try PictorProcess(in: folder)
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    for _ in 0..<4 { #expect(try pictor.get(origin.target("/a.jpg")).status == 200) }
    let stats = try pictor.stats()
    #expect(stats.status == "serving")
    #expect(stats.version == pictorVersion)
    #expect(stats.uptimeSeconds > 0 && stats.status == "serving" && !stats.version.isAbsent)
    #expect(stats.requests.byOrigin == ["memory": 3, "origin": 1])
    #expect(stats.requests.hitRatio == 0.75)
    #expect(stats.requests.hitLatency.count == 3)
    let misses = stats.requests.missLatency
    #expect(misses.p50Ms > 0 && misses.p99Ms >= misses.p50Ms)
    #expect(stats.memory.entries == 1 && stats.memory.hits == 3 && stats.memory.misses == 1)
    #expect(stats.memory.bytes > 0 && stats.memory.bytes < stats.memory.limit)
    #expect(stats.disk.limit == 10_737_418_240 && stats.disk.misses == 2)
    #expect(stats.downloads.succeeded == 1 && stats.downloads.limitPerHost == 6)
    #expect(stats.downloads.bytes > 0)
    #expect(stats.imaging.succeeded == 1 && stats.imaging.workersLost == 0)
    #expect(stats.imaging.residentBytes > 0)
    #expect(stats.process.residentBytes > 0 && stats.process.descriptors > 0)
  }
}
