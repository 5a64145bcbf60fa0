// DoctorTests: `POST /admin/doctor` and `pictor doctor` with origins that fail at each step.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class DoctorTests: OriginSuite {
  /// Starts a server with an operator, whose waits for origins are short.
  private func start(_ options: String...) throws -> PictorProcess {
    try PictorProcess(
      in: folder,
      PictorProcess.operated + [
        "--download.retries", "0", "--download.first_byte_timeout", "1s", "--download.timeout",
        "3s",
      ] + options)
  }

  private func diagnose(_ url: String, at pictor: PictorProcess) throws -> Diagnosis {
    let answer = try pictor.operate("POST", target: "/admin/doctor?url=\(encoded(url))")
    #expect(answer.status == 200, "\(answer.text)")
    let diagnosis = try JSONDecoder().decode(Diagnosis.self, from: Data(answer.body))
    return diagnosis
  }

  /// Expects a diagnosis that ends at a step, whose text and rule contain these.
  private func expect(
    _ url: String, at pictor: PictorProcess, failsAt name: Diagnosis.Name, found: String,
    rule: String
  ) throws {
    let diagnosis = try diagnose(url, at: pictor)
    let steps = diagnosis.steps
    let last = try #require(steps.last, "\(url)")
    #expect(last.step == name && !last.ok && !diagnosis.ok, "\(url): \(steps)")
    #expect(last.found.contains(found) && last.rule.contains(rule), "\(url): \(steps)")
    #expect(steps.count { !$0.ok } == 1, "\(url): \(steps)")
    let order = Diagnosis.Name.allCases
    let places = steps.compactMap { order.firstIndex(of: $0.step) }
    #expect(places == places.sorted(), "\(url): \(steps)")
  }

  @Test func `a sound source has each step with its time and rule, and nothing is kept`() throws {
    // Given: a source behind a redirect, which is cached already
    let pictor = try start()
    let image = try TestImages.jpeg(width: 60, height: 40)
    origin.serve("/a.jpg", bytes: image, headers: ["Cache-Control: max-age=70"])
    origin.route("/old", to: .redirect(to: "/a.jpg"))
    #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
    try pictor.waitFor("it is stored") { $0.disk.stores > 0 }
    let connections = origin.connections
    // When
    let diagnosis = try diagnose(origin.url("/old"), at: pictor)
    // Then
    #expect(
      diagnosis.steps.map(\.step) == [
        .allowed, .queue, .name, .connect, .status, .type, .size, .freshness, .decode,
      ])
    #expect(diagnosis.ok)
    #expect(diagnosis.image?.format == "jpeg" && diagnosis.image?.width == 60)
    let timed = diagnosis.steps.filter { $0.ms != nil }.map(\.step)
    #expect(timed == [.queue, .name, .connect, .status, .size, .decode])
    let texts = diagnosis.steps.map(\.found)
    #expect(texts[0] == origin.url("/a.jpg"))
    #expect(texts[4] == "200, redirects: 1")
    #expect(texts[5] == "Content-Type image/jpeg, bytes of a JPEG")
    #expect(texts[6] == "\(image.count) bytes")
    #expect(diagnosis.steps[7].rule == "max-age (RFC 9111, section 5.2.2.1)")
    #expect(origin.requests(to: "/a.jpg") == 2 && origin.connections > connections)
    let stored = "/admin/cache?url=\(encoded(origin.url("/old")))"
    #expect(try pictor.operate("HEAD", target: stored).status == 404)
  }

  @Test func `each way to fail before a body names its step and its key`() throws {
    let pictor = try start("--download.deny_hosts", "denied.example")
    let silent = try Origin(answers: false)
    let closed = try ClosedPort()
    origin.route("/broken", to: .status(500))
    origin.route("/away", to: .redirect(to: "http://10.0.0.1/a.jpg"))
    origin.route("/ftp", to: .redirect(to: "ftp://example.com/a.jpg"))
    // An address that answers in plain text
    let plain = origin.url("/a.jpg").replacing("http:", with: "https:")
    for (url, step, found, rule) in [
      ("http://denied.example/a.jpg", .allowed, "forbidden_source", "download."),
      ("http://no-such-name.invalid/a.jpg", .name, "source_", "download.connect_timeout"),
      ("http://10.0.0.1/a.jpg", .connect, "10.0.0.1", "download.allow_networks"),
      (closed.url("/a.jpg"), .connect, "source_unreachable", "download.connect_timeout"),
      (plain, .tls, "source_tls", "download.ca_file"),
      (silent.url("/a.jpg"), .status, "source_timeout", "download.first_byte_timeout"),
      (origin.url("/absent.jpg"), .status, "(404)", "download.first_byte_timeout"),
      (origin.url("/broken"), .status, "500", "RFC 9110"),
      (origin.url("/away"), .connect, "10.0.0.1", "download.allow_networks"),
      (origin.url("/ftp"), .status, "forbidden_source", "download."),
    ] as [(String, Diagnosis.Name, String, String)] {
      try expect(url, at: pictor, failsAt: step, found: found, rule: rule)
    }
  }

  @Test func `each way to fail at a body names its step and its key`() throws {
    let pictor = try start(
      "--download.maximum_bytes", "100KiB", "--imaging.maximum_pixels", "5000")
    let image = try TestImages.jpeg(width: 60, height: 40)
    let gate = Gate()
    defer { gate.open() }
    origin.route("/long.jpg", to: .ok([UInt8](repeating: 1, count: 200 << 10)))
    origin.route("/slow.jpg", to: .ok(image, holdingAfter: 100, at: gate))
    origin.route("/cut.jpg", to: .truncated(image, declaring: image.count + 9))
    origin.serve("/text", bytes: Array("no image".utf8), type: "text/plain")
    origin.serve("/huge.jpg", bytes: try TestImages.jpeg(width: 100, height: 80))
    origin.serve("/damaged.jpg", bytes: Array(image.dropLast(image.count / 3)))
    for (path, step, found, rule) in [
      ("/long.jpg", .size, "source_too_large", "download.maximum_bytes"),
      ("/slow.jpg", .size, "source_timeout", "download.timeout"),
      ("/cut.jpg", .size, "source_incomplete", "download."),
      ("/text", .decode, "unsupported_format", "imaging."),
      ("/huge.jpg", .decode, "too_many_pixels", "imaging.maximum_pixels"),
      ("/damaged.jpg", .decode, "undecodable", "imaging."),
    ] as [(String, Diagnosis.Name, String, String)] {
      try expect(origin.url(path), at: pictor, failsAt: step, found: found, rule: rule)
    }
    let type = try diagnose(origin.url("/text"), at: pictor).steps.first { $0.step == .type }
    #expect(type?.found == "Content-Type text/plain, bytes of no known format")
  }

  @Test func `a certificate that is not trusted fails, and one that is has a step`() async throws {
    let nginx = try await Nginx(files: ["a.jpg": try TestImages.jpeg(width: 60, height: 40)])
    let strict = try start("--download.allow_networks", "127.0.0.0/8,::1/128")
    try expect(
      nginx.url("/a.jpg"), at: strict, failsAt: .tls, found: "source_tls", rule: "download.ca_file")
    #expect(try strict.end() == 0)
    let pictor = try start(
      "--download.allow_networks", "127.0.0.0/8,::1/128", "--download.ca_file", nginx.certificate)
    let steps = try diagnose(nginx.url("/a.jpg"), at: pictor).steps
    let tls = try #require(steps.first { $0.step == .tls }, "\(steps)")
    #expect(tls.ok && tls.ms ?? 0 > 0 && steps.last?.step == .decode)
  }

  @Test func `a local file has a step of its own, and an object those of its store`() throws {
    // Given
    let bucket = try S3Server(objects: ["a.jpg": try TestImages.jpeg(width: 60, height: 40)])
    try folder.write(
      "pictor.json5",
      bytes: Array(
        """
        { hosts: [{ host: "shared", s3: { endpoint: "\(bucket.endpoint)",
          region: "\(S3Server.region)", access_key: "\(S3Server.accessKey)",
          secret_key: "env:SECRET", addressing: "path" } }] }
        """.utf8))
    try folder.write("a.jpg", bytes: try TestImages.jpeg(width: 30, height: 20))
    let pictor = try PictorProcess(
      in: folder,
      PictorProcess.operated + [
        "--config", folder.path + "/pictor.json5", "--sources.local_root", folder.path,
      ], environment: ["SECRET": S3Server.secret])
    // Then
    let local = try diagnose("local:///a.jpg", at: pictor)
    #expect(local.ok && local.image?.width == 30)
    #expect(local.steps.map(\.step) == [.file, .type, .size, .freshness, .decode])
    #expect(local.steps[3].rule == "sources.local_lifetime")
    try expect(
      "local:///absent.jpg", at: pictor, failsAt: .file, found: "source_not_found",
      rule: "sources.local_root")
    let object = try diagnose("s3://shared/a.jpg", at: pictor)
    #expect(object.ok && object.image?.width == 60, "\(object)")
    #expect(object.steps.map(\.step).prefix(3) == [.allowed, .queue, .name])
    try expect(
      "s3://other/a.jpg", at: pictor, failsAt: .allowed, found: "forbidden_source", rule: "hosts")
    // And a body is no source of an operator
    let body = try pictor.operate("POST", target: "/admin/doctor?url=body:///image")
    #expect(body.status == 400)
  }

  @Test func `two at once load by themselves, and finish while the server drains`() throws {
    // Given
    let pictor = try start("--download.first_byte_timeout", "20s", "--download.timeout", "20s")
    let gate = Gate()
    origin.route("/a.jpg", to: .hold(gate, then: .ok(try TestImages.jpeg(width: 60, height: 40))))
    let target = "POST /admin/doctor?url=\(encoded(origin.url("/a.jpg"))) HTTP/1.1\r\nHost: t\r\n"
    let request = target + "Authorization: Bearer \(PictorProcess.token)\r\n\r\n"
    let clients = try (0..<3).map { _ in
      let client = try pictor.connect()
      try client.send(request)
      return client
    }
    try blockUntil("all are asked for") { origin.requests(to: "/a.jpg") == 3 }
    #expect(origin.connections == 3)
    // When: one client leaves
    clients[2].close()
    try pictor.waitFor("its load ends") { $0.downloads.cancelled == 1 }
    // And the server is told to stop
    kill(pictor.id, SIGTERM)
    try blockUntil("it drains") { (try? pictor.connect()) == nil }
    gate.open()
    // Then
    for client in clients.prefix(2) {
      let answer = try client.readAnswer()
      #expect(answer.status == 200 && answer.text.contains("\"ok\" : true"), "\(answer.text)")
    }
    #expect(try pictor.end(0) == 0)
  }

  @Test func `the command prints a table, and its status tells whether the source is sound`() throws
  {
    let pictor = try start()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    func run(_ arguments: String...) throws -> (status: CInt, log: String) {
      let process = try PictorProcess(
        in: folder,
        ["doctor", "--server.port", "\(pictor.port)"] + PictorProcess.operated + arguments,
        isServer: false)
      return (try process.end(0), process.log)
    }
    let sound = try run(origin.url("/a.jpg"))
    #expect(sound.status == 0)
    #expect(sound.log.contains("jpeg, 60×40, frames: 1"), "\(sound.log)")
    let broken = try run(origin.url("/absent.jpg"))
    #expect(broken.status == 1)
    #expect(broken.log.split(separator: "\n").last?.hasPrefix("FAILED  status") == true)
    let json = try run("--json", origin.url("/a.jpg"))
    #expect(json.status == 0 && json.log.hasPrefix("{") && json.log.contains("\"step\""))
    #expect(try run().status == 2)
    #expect(try run("http://").status == 1)
  }
}
