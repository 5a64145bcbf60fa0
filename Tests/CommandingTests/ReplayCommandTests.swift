// ReplayCommandTests: what the lines of access logs are at a door, and how two servers compare.

@testable import Core
import Glibc
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads) struct AccessLineTests {
  @Test(arguments: [
    (
      #"1.2.3.4 - - [29/Nov/2026:19:30:41 +0000] "GET /_/w:9/plain/a?b=c HTTP/1.1" 200 1 "http://r/" "-""#,
      "/_/w:9/plain/a?b=c"
    ),
    (#"1.2.3.4 - - [29/Nov/2026:19:30:41 +0000] "-" 400 0 "http://r/" "curl/8""#, nil),
    (
      #"{"ts":1,"msg":"handled request","request":{"method":"GET","uri":"\/a?b=1\u0026c=2"}}"#,
      "/a?b=1&c=2"
    ),
    (#"{"RequestMethod":"GET","RequestPath":"/a","request_Referer":"/b"}"#, "/a"),
    (#"{"path":"/a","request_uri":"/a?b"}"#, "/a?b"),
    (#"{"httpRequest":{"requestUrl":"https://h/a?b"}}"#, "https://h/a?b"),
    (#"{"level":"INFO","msg":"Started /a"}"#, ""), (#"{"url":"none"}"#, nil), ("{", nil),
    (#"{"msg":"Completed in 1ms /a","status":200}"#, "/a"),
    (#"time=1 referer="/no" msg="a request" url="/a b" status=200"#, "/a"),
    (#"level=info path=/a?b=c method=GET"#, "/a?b=c"),
    (#"time="2026-11-29" level="INFO" msg="Started /a" request_id="x""#, ""),
    (#"time="2026-11-29" level="INFO" msg="Completed in 18.6ms /a" status=200"#, "/a"),
    ("2026-11-29 19:30:41 \u{1B}[1;32m[INF]\u{1B}[0m Started /a \u{1B}[32mmethod\u{1B}[0m=GET", ""),
    ("2026-11-29 19:30:41 [INF] Completed in 13.5ms /a \u{1B}[32mstatus\u{1B}[0m=200\r", "/a"),
    (
      "2026-11-29 19:30:39 tornado.access:INFO 200 GET /unsafe/9x9/a.jpg (127.0.0.1) 4.8ms",
      "/unsafe/9x9/a.jpg"
    ),
    ("no address at all", nil),
  ])
  func `the address is found in each format`(line: String, address: String?) {
    #expect(AccessLine.address(in: line.utf8) == address)
  }
}

@Suite(.onOwnThreads) struct ReplayCommandTests {
  let folder: TemporaryFolder
  let old: Origin
  let own: Origin
  let printed = Printed()
  let interruption: Interruption

  init() throws {
    folder = try TemporaryFolder()
    (old, own) = (try Origin(), try Origin())
    interruption = try Interruption()
  }

  /// Does what a worker does with opaque images.
  static let render: Rendering = { job in
    guard let image = try? Pixels(decoding: job.file.bytes) else { return nil }
    let sizing = job.transform.sizing
    let size = PixelSize(
      width: sizing.width ?? image.size.width, height: sizing.height ?? image.size.height)
    let scaled = Pixels(width: size.width, height: size.height, bands: image.bands) { x, y in
      image[x * image.size.width / size.width, y * image.size.height / size.height]
    }
    let tiff = (try? TestImages.encode(scaled, as: ".tif[compression=none]")) ?? []
    let rendered = RenderedImage(format: .tiff, size: size, density: 1)
    return ProcessedImage(
      body: .memory(tiff.withUnsafeBytes { ImageBytes(copying: $0) }),
      report: RenderReport(content: .image(rendered), digest: "", timings: Timings()))
  }

  func run(
    _ paths: [String], _ arguments: String..., prefix: String = "", input: CInt? = nil
  ) async throws -> CInt {
    let log = paths.map { #"1.1.1.1 - - [x] "GET \#($0) HTTP/1.1" 200 5"# + "\n" }.joined()
    try folder.write("log", bytes: Array(log.utf8))
    let invocation = try Invocation(
      arguments: ["replay", "--door", "imgproxy", input == nil ? folder.path + "/log" : "-"]
        + arguments)
    guard case .replay(let order) = invocation.action else { return -1 }
    var configuration = Configuration()
    configuration.server.port = own.port
    configuration.doors[.imgproxy, default: DoorSettings()].prefix = prefix
    var command = try ReplayCommand(configuration, order: order, environment: [:])
    command.console = printed.console()
    command.interruption = interruption
    command.input = input ?? -1
    return await exitStatus { command.run { Self.render } }
  }

  var output: String { printed.output }
  var errors: String { printed.errors }

  @Test func `the shares of requests and of addresses are told, with what is not exact`()
    async throws
  {
    let exact = "/_/w:9/plain/https://h.example/a.jpg"
    let near = "/img/_/rs:fill:9:9/g:sm/plain/https://h.example/a.jpg"
    let refused = "/_/f:ico/plain/https://h.example/\u{1B}a.jpg"
    #expect(
      try await run([exact, near, exact, refused, "http://h" + exact, "-"], prefix: "/img") == 0)
    let text = output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
    #expect(
      text.prefix(4) == [
        "6 lines, 1 without an address", "requests addresses", "exact 3 60.0 % 1 33.3 %",
        "near 1 20.0 % 1 33.3 %",
      ])
    #expect(text[4] == "refused 1 20.0 % 1 33.3 %")
    #expect(text.contains { $0.hasPrefix("1 1 near gravity: ") })
    #expect(text.contains("1 1 refused format: Pictor does not write 'ico'"))
    #expect(!output.contains("\u{1B}"))
    #expect(old.totalRequests + own.totalRequests == 0)
  }

  @Test func `a log of a megabyte without an end of line is one line, also from standard input`()
    async throws
  {
    try folder.write(
      "long", bytes: [UInt8](repeating: 0x61, count: 3 << 20) + Array("\n/_/w:9/plain/a".utf8))
    let input = open(folder.path + "/long", O_RDONLY)
    defer { close(input) }
    #expect(try await run([], input: input) == 0)
    #expect(output.hasPrefix("2 lines, 1 without an address\n"))
  }

  @Test func `both servers are asked, and the worst pairs are on a page without markup of the log`()
    async throws
  {
    let red = try TestImages.encode(Pixels(width: 4, height: 3, color: [90, 0, 0]), as: ".png")
    let dark = try TestImages.encode(
      Pixels(width: 8, height: 6, color: [80, 0, 0]), as: ".webp[lossless]")
    let urls = ["same", "other", "gone<b>&"].map { "/_/w:9/plain/https://h.example/\($0)" }
    old.routeOthers { _ in .ok(red) }
    own.routeOthers { request in
      request.target.hasSuffix("same")
        ? .ok(red) : request.target.hasSuffix("other") ? .ok(dark) : .status(404)
    }
    let page = folder.path + "/page.html"
    let status = try await run(
      urls, "--against", old.url("/base/"), "--page", page, prefix: "/img")
    #expect(status == 0, "\(errors)")
    #expect(Set(old.received(at: "/base" + urls[0]).map(\.target)) == ["/base" + urls[0]])
    #expect(own.requests(to: "/img" + urls[0]) == 1)
    let text = output.split(separator: "\n").map { $0.split(separator: " ").joined(separator: " ") }
    for line in [
      "status 2 of 3 equal", "size 1 of 2 equal", "format 1 of 2 equal",
      "RMSE, of 255 median 5.77, 95th percentile 5.77",
      "- 200 4x3 png \(red.count) B 404 - - 0 B \(urls[2])",
      "5.77 200 4x3 png \(red.count) B 200 8x6 webp \(dark.count) B \(urls[1])",
    ] {
      #expect(text.contains(line), "\(line)")
    }
    let html = String(decoding: try FileContents.read(page, limit: 1 << 20), as: UTF8.self)
    #expect(html.contains("gone&lt;b>&amp;") && !html.contains("<b>"))
    #expect(html.components(of: "<img ") == 4 && html.contains("data:image/webp;base64,UklG"))
    #expect(!html.contains(urls[0] + "\n"))
  }

  @Test func `a server that is not there ends the command, and an interruption reports`()
    async throws
  {
    let url = "/_/w:9/plain/https://h.example/a"
    own.stop()
    #expect(try await run([url], "--against", old.url("")) == 1)
    #expect(errors.hasPrefix("pictor: cannot connect to 127.0.0.1 port \(own.port)"))
    #expect(try await run([url], "--against", own.url("")) == 1)
    let absent = try Invocation(arguments: ["replay", "--door", "ipx", folder.path + "/absent"])
    guard case .replay(let order) = absent.action else { return }
    var command = try ReplayCommand(Configuration(), order: order, environment: [:])
    (command.interruption, command.console) = (interruption, printed.console())
    #expect(
      command.run { nil } == 1
        && errors.hasSuffix("cannot be read: No such file or directory (2)\n"))
    interruption.note(SIGINT)
    #expect(try await run([url]) == 130)
    #expect(output.hasSuffix("not exact\n"))
  }
}

extension String {
  fileprivate func components(of mark: String) -> Int { ranges(of: mark).count }
}
