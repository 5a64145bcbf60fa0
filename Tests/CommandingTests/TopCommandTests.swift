// TopCommandTests: the top command against a test server.

import Configuring
import Glibc
import Model
import Platform
import TestSupport
import Testing

@testable import Commanding

@Suite(.onOwnThreads, .serialized) struct TopCommandTests {
  private let server: Origin
  private let said = Lock((output: "", errors: ""))
  private let interruption: Interruption

  init() throws {
    server = try Origin()
    interruption = try Interruption()
  }

  /// The JSON of `/stats` after some seconds.
  private func stats(
    uptime: Double, requests: Int, misses: Int = 0, status: String = "serving"
  ) -> OriginReply {
    let latency = { (count: Int) in
      """
      {"count": \(count), "sum_seconds": \(Double(count) * 0.02), "p50_ms": 20, "p95_ms": 30.5, "p99_ms": 400}
      """
    }
    let tier =
      #"{"bytes": 1048576, "limit": 268435456, "entries": 7, "evictions": 2, "failures": 0}"#
    let body = """
      {"version": "0.1.0", "status": "\(status)", "uptime_seconds": \(uptime), "else": 1,
       "requests": {"total": \(requests), "active": 3, "limit": 2048, "connections": 4,
        "bytes_sent": \(requests * 2048), "errors": {"overloaded": \(misses)},
        "by_outcome": {"hit": {"memory": \(requests - misses)}, "miss": {"none": \(misses)}},
        "by_status": {"200": \(requests - misses), "503": \(misses)},
        "hit_latency": \(latency(requests - misses)), "miss_latency": \(latency(misses)),
        "stages": {"decode": \(latency(misses)), "dns": \(latency(0)), "new": \(latency(1))}},
       "memory": \(tier), "disk": \(tier),
       "downloads": {"running": 1, "limit": 64, "waiting": 0, "bytes": 0, "succeeded": 0,
        "failed": {}, "circuits_open": 2},
       "imaging": {"workers": 2, "running": 2, "waiting": 5, "limit": 1024, "succeeded": 0,
        "failed": {}, "workers_lost": 1},
       "process": {"cpu_seconds": \(uptime / 2), "resident_bytes": 104857600, "threads": 22,
        "descriptors": 31, "descriptor_limit": 20000}}
      """
    return .status(200, body: Array(body.utf8), headers: ["Content-Type: application/json"])
  }

  private func run(
    isOnce: Bool = true, columns: Int? = nil, port: Int? = nil
  ) async -> CInt {
    var settings = Configuration().server
    settings.port = port ?? server.port
    var order = TopOrder()
    order.isOnce = isOnce
    order.interval = .milliseconds(1)
    let console = Console(
      output: { [said] text in said.withLock { $0.output += text } },
      errors: { [said] text in said.withLock { $0.errors += text } }, columns: { nil },
      screen: { columns.map { ($0, 40) } })
    let command = TopCommand(settings, order: order, console: console, interruption: interruption)
    return await withTaskExecutorPreference(BlockingExecutor.shared) { command.run() }
  }

  private var output: String { said.withLock { $0.output } }
  private var errors: String { said.withLock { $0.errors } }

  /// Returns the output's line that begins with a name.
  private func line(_ name: String) -> String? {
    output.split(separator: "\n").map(String.init).first { $0.hasPrefix(name + " ") }
  }

  @Test func `once shows the rates and shares of one interval`() async {
    server.route("/stats") {
      $0.number == 1
        ? stats(uptime: 10, requests: 100, misses: 50)
        : stats(uptime: 12, requests: 500, misses: 150)
    }
    #expect(await run() == 0)
    #expect(server.requests(to: "/stats") == 2)
    #expect(
      output.hasPrefix(
        "pictor 0.1.0 at 127.0.0.1 port \(server.port): serving for 0:12; the last 2.0 s\n"))
    #expect(
      line("requests") == "requests    200/s, 3 of 2048 active, connections: 4, 400 KiB/s sent")
    #expect(line("images") == "images      hit memory 75.0 %, miss 25.0 %")
    #expect(line("statuses") == "statuses    200: 300, 503: 100")
    #expect(line("errors") == "errors      overloaded: 100")
    #expect(
      line("miss") == "miss              20.0      20.0      30.5       400       150")
    #expect(line("  decode")?.hasSuffix(" 150") == true && line("  dns") == nil)
    // A stage that this version does not know, without a measurement in the interval
    #expect(line("  new") == "  new                -      20.0      30.5       400         1")
    #expect(
      line("memory") == "memory      1.0 MiB of 256 MiB, entries: 7, evictions: 0, failures: 0")
    #expect(line("downloads")?.hasSuffix("open circuits: 2") == true)
    #expect(
      line("imaging")
        == "imaging     2 of 2 workers busy, 5 of 1024 waiting, 0.0/s, workers lost: 1")
    #expect(
      line("process")
        == "process     0.5 cores, 100 MiB resident, threads: 22, 31 of 20000 descriptors")
    #expect(!output.contains("\u{1B}") && errors.isEmpty)
  }

  @Test func `a server that was restarted counts from its start`() async {
    server.route("/stats") {
      $0.number == 1
        ? stats(uptime: 1_000, requests: 9_000, misses: 50) : stats(uptime: 4, requests: 8)
    }
    #expect(await run() == 0)
    #expect(line("requests")?.hasPrefix("requests    2.0/s, ") == true)
    #expect(line("statuses") == "statuses    200: 8")
  }

  @Test func `on a terminal, failures replace the figures until a signal arrives`() async {
    server.route("/stats") { request in
      switch request.number {
      case 3: return .status(503)
      case 5:
        interruption.note(SIGINT)
        return .closeBeforeHead
      default: return stats(uptime: Double(request.number), requests: request.number)
      }
    }
    #expect(await run(isOnce: false, columns: 40) == 0)
    let screens = output.split(separator: "\u{1B}[H", omittingEmptySubsequences: false)
    #expect(screens.count == 4 && screens[0] == "\u{1B}[2J")
    #expect(screens[1].hasPrefix("pictor 0.1.0") && screens[3].hasPrefix("pictor 0.1.0"))
    #expect(screens[2].contains("responded with 503\u{1B}[K\n\u{1B}[J"))
    for line in output.split(separator: "\n") {
      let visible = line.replacing(/\u{1B}\[[0-9]*[A-Z]/, with: "")
      #expect(visible.hasPrefix("127.0.0.1") || visible.count < 40, "\(visible)")
    }
    #expect(errors.isEmpty)
  }

  @Test(arguments: [
    (OriginReply.status(503), "responded with 503"), (.ok([]), "is not that of /stats"),
    (.closeBeforeHead, "is not HTTP or is incomplete"),
  ]) func `a first look that fails is an error`(reply: OriginReply, words: String) async {
    server.route("/stats", to: reply)
    #expect(await run(isOnce: false) == 1)
    #expect(errors.contains(words) && errors.hasPrefix("pictor: ") && output.isEmpty)
  }

  @Test func `once, a failure of the second look is an error`() async {
    server.route("/stats") { $0.number == 1 ? stats(uptime: 1, requests: 1) : .status(500) }
    #expect(await run() == 1)
    #expect(errors.contains("responded with 500") && output.isEmpty)
  }

  @Test func `text of the server cannot control the terminal`() async {
    server.route("/stats", to: stats(uptime: 1, requests: 1, status: "\\u001b[2J"))
    #expect(await run() == 0)
    #expect(!output.contains("\u{1B}") && output.contains("\u{FFFD}[2J"))
  }

  @Test(arguments: [
    (0, "0.0"), (0.126, "0.13"), (9.994, "9.99"), (12.34, "12.3"), (99.96, "100.0"),
    (1e9, "1000000000"),
    (-1, "0.0"), (.infinity, "1000000000000000"),
  ]) func `numbers have few digits`(value: Double, text: String) {
    #expect(TopScreen.decimal(value) == text)
  }

  @Test(arguments: [
    (0, "0.0 B"), (1_023, "1023 B"), (1_024, "1.0 KiB"), (5e12, "4.55 TiB"), (1e18, "909495 TiB"),
  ]) func `bytes have binary units`(count: Double, text: String) {
    #expect(TopScreen.bytes(count) == text)
  }
}
