// FleetSourceTests: real programs that share sources through a bucket, beside a real Redis.

import Glibc
import Platform
import Telemetry
import TestSupport
import Testing

@Suite(.onOwnThreads) struct FleetSourceTests {
  private static let images = 30

  private let machines: FleetMachines
  private let bucket: S3Server
  private let secrets: TemporaryFolder

  init() throws {
    machines = try FleetMachines()
    bucket = try S3Server()
    secrets = try TemporaryFolder()
    try secrets.write("secret", bytes: Array(S3Server.secret.utf8))
    for number in 0..<Self.images {
      // Other bytes for each.
      machines.origin.serve(
        "/\(number).jpg", bytes: try TestImages.jpeg(width: 60 + number, height: 40))
    }
  }

  private func start(_ number: Int, _ options: [String] = []) throws -> PictorProcess {
    try machines.start(
      number,
      [
        "--fleet.s3.bucket", "shared", "--fleet.s3.endpoint", bucket.endpoint,
        "--fleet.s3.region", S3Server.region, "--fleet.s3.access_key", S3Server.accessKey,
        "--fleet.s3.secret_key", "file:\(secrets.path)/secret", "--fleet.s3.timeout", "10s",
        "--fleet.lease_wait", "60s",
      ] + options)
  }

  private func figures(_ pictor: PictorProcess) throws -> SharedSourceFigures {
    try #require(try machines.figures(pictor).sources)
  }

  /// Asks for an image in a width, and returns status and Cache-Status.
  private func get(_ pictor: PictorProcess, _ image: Int, width: Int) throws -> (Int, String) {
    let answer = try pictor.connect().get(
      "/image?url=\(encoded(machines.origin.url("/\(image).jpg")))&w=\(width)")
    return (answer.status, answer["Cache-Status"] ?? "")
  }

  @Test func `three machines that make different variants download each image once`() async throws {
    let pictors = try (0..<3).map { try start($0) }
    let statuses = await withTaskGroup(of: [Int].self) { group in
      for (number, pictor) in pictors.enumerated() {
        group.addTask {
          let threads = BlockingThreads(name: "client", threads: 1, deadline: .seconds(120))
          let statuses = try? await threads.value {
            (0..<Self.images).map { step in
              // The same order, so that they meet.
              (try? get(pictor, step, width: 20 + number).0) ?? 0
            }
          }
          return statuses ?? []
        }
      }
      return await group.reduce(into: []) { $0 += $1 }
    }
    #expect(statuses.count == 3 * Self.images && statuses.allSatisfy { $0 == 200 })
    let stats = try pictors.map { try machines.stats($0) }
    // A machine that gets no processor for seconds cannot renew its leases: each that it loses may cost a download.
    let lost = stats.reduce(0) { $0 + ($1.fleet?.leasesLost ?? 0) }
    let downloads = stats.reduce(0) { $0 + $1.downloads.succeeded }
    #expect((Self.images...(Self.images + lost)).contains(downloads))
    #expect(stats.reduce(0) { $0 + $1.imaging.succeeded } == 3 * Self.images)
    #expect(try pictors.reduce(0) { try $0 + figures($1).hits } >= 2 * Self.images - lost)
  }

  @Test func `a machine that comes later has sources without the origin, unless they are purged`()
    throws
  {
    let (first, second) = (try start(0), try start(1))
    #expect(try get(first, 0, width: 20).1.contains("fwd=uri-miss"))
    try blockUntil("the source is written") { try figures(first).stores == 1 }
    #expect(try get(second, 0, width: 21) == (200, "pictor; hit; detail=source"))
    #expect(machines.origin.requests(to: "/0.jpg") == 1)
    // When it is purged, on the second
    let answer = try second.operate(
      "DELETE", target: "/admin/cache?url=\(encoded(machines.origin.url("/0.jpg")))")
    #expect(answer.status == 200)
    // Then both load it again, once
    for pictor in [first, second] { try machines.waitUntilRead(by: pictor) }
    #expect(try get(first, 0, width: 22).1.contains("fwd=uri-miss"))
    try blockUntil("the source is written") { try figures(first).stores == 2 }
    #expect(try get(second, 0, width: 22).0 == 200)
    #expect(try get(second, 0, width: 23) == (200, "pictor; hit; detail=source"))
    #expect(machines.origin.requests(to: "/0.jpg") == 2)
  }

  @Test func `a bucket that is away costs no request`() throws {
    bucket.behave { _ in S3Server.error(503, "SlowDown") }
    let pictors = try (0..<2).map { try start($0) }
    for image in 0..<5 {
      for (number, pictor) in pictors.enumerated() {
        #expect(try get(pictor, image, width: 20 + number).0 == 200)
      }
    }
    #expect(try pictors.allSatisfy { try figures($0).stores == 0 })
  }
}
