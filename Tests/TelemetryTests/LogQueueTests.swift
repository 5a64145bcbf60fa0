// LogQueueTests: tests that callers never wait for the log's reader.

import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import Core

struct LogQueueTests {
  /// A pipe that `fill` can fill up.
  private final class Pipe {
    let reading: CInt
    let writing: CInt

    init() throws {
      var ends: [CInt] = [0, 0]
      try #require(pipe(&ends) == 0)
      reading = ends[0]
      writing = ends[1]
    }

    deinit {
      close(reading)
      close(writing)
    }

    func fill() {
      let flags = fcntl(writing, F_GETFL)
      _ = fcntl(writing, F_SETFL, flags | O_NONBLOCK)
      let byte: [UInt8] = [0]
      while write(writing, byte, 1) == 1 {}
      _ = fcntl(writing, F_SETFL, flags)
    }

    /// Returns all bytes until `isOver`, without those of `fill`.
    func text(until isOver: (String) -> Bool) -> String {
      var bytes: [UInt8] = []
      var buffer = [UInt8](repeating: 0, count: 1 << 16)
      while !isOver(String(decoding: bytes, as: UTF8.self)) {
        let count = read(reading, &buffer, buffer.count)
        guard count > 0 else { break }
        bytes += buffer[..<count].filter { $0 != 0 }
      }
      return String(decoding: bytes, as: UTF8.self)
    }
  }

  @Test func `format and level change for the next line of every log of the queue`() throws {
    let pipe = try Pipe()
    let queue = try LogQueue(format: .text, descriptor: pipe.writing)
    let log = Log(level: .info, queue: queue)
    log.info("first")
    log.debug("hidden")
    queue.format = .json
    queue.level = .debug
    log.debug("second")
    #expect(queue.stop(within: .seconds(10)))
    let lines = pipe.text { $0.contains("second") }.split(separator: "\n")
    #expect(lines.count == 2)
    #expect(lines.first?.hasSuffix("first") == true, "\(lines)")
    #expect(lines.last?.contains("\"message\":\"second\"") == true, "\(lines)")
  }

  @Test func `a normal stop writes every logged line in order`() throws {
    // Given
    let pipe = try Pipe()
    let queue = try LogQueue(format: .text, descriptor: pipe.writing)
    let log = Log(level: .info, queue: queue)
    // When
    for number in 0..<200 { log.info("line", fields: ["number": .int(number)]) }
    #expect(queue.stop(within: .seconds(10)))
    // Then
    let text = pipe.text { $0.contains("number=199\n") }
    let numbers = text.split(separator: "\n").map { $0.split(separator: "=").last.map(String.init) }
    #expect(numbers == (0..<200).map { "\($0)" })
    #expect(log.figures.written == 200 && log.figures.dropped == 0)
    #expect(log.figures.waitingBytes == 0)
  }

  @Test func `an unread log never blocks callers, and later reports the number of dropped lines`()
    throws
  {
    // Given a full pipe
    let pipe = try Pipe()
    pipe.fill()
    let queue = try LogQueue(format: .text, descriptor: pipe.writing, limit: 4_096)
    let log = Log(level: .info, queue: queue)
    // When more is logged than fits
    for number in 0..<1_000 { log.info("line", fields: ["number": .int(number)]) }
    // Then each line was queued or counted
    #expect(log.figures.dropped > 800 && log.figures.waitingBytes <= 2 * 4_096 + 200)
    #expect(!queue.stop(within: .milliseconds(50)))
    // When the pipe is read, then one or two lines report the number of dropped lines.
    func told(_ text: String) -> [Int] {
      text.split(separator: "\n").filter { $0.contains("log lines dropped") }
        .compactMap { $0.split(separator: "=").last.flatMap { Int($0) } }
    }
    let dropped = log.figures.dropped.whole
    let text = pipe.text { $0.hasSuffix("\n") && told($0).reduce(0, +) >= dropped }
    #expect(told(text).reduce(0, +) == dropped)
    #expect(text.split(separator: "\n").count == 1_000 - dropped + told(text).count)
    #expect(queue.stop(within: .seconds(10)))
  }

  @Test func `repeated failures are summarized by kind`() throws {
    // Given
    let pipe = try Pipe()
    let queue = try LogQueue(format: .text, descriptor: pipe.writing)
    let log = Log(level: .info, queue: queue)
    // When
    for _ in 0..<100 {
      log.info("request", fields: ["error": "source_error"])
      log.warning("cannot write")
      log.info("request", fields: ["error": .absent])
    }
    log.info("request", fields: ["error": "draining"])
    #expect(queue.stop(within: .seconds(10)))
    // Then
    let lines = pipe.text { $0.components("\n") == 20 + 20 + 100 + 1 + 2 }.split(separator: "\n")
    #expect(lines.count { $0.hasSuffix("error=source_error") } == LogLimiter.linesPerWindow)
    #expect(lines.count { $0.hasSuffix(" cannot write") } == LogLimiter.linesPerWindow)
    #expect(lines.count { $0.hasSuffix(" request") } == 100)
    let sums = lines.filter { $0.contains("repeated") }
    #expect(sums.count == 2 && sums.allSatisfy { $0.hasSuffix("times=80") })
    #expect(log.figures.summedUp == 160)
  }

  @Test func `a window ends after its length, and the number of separate kinds is limited`() {
    // Given
    var limiter = LogLimiter()
    let start = ContinuousClock.now
    for _ in 0..<25 { _ = limiter.admits("a", at: .warning, now: start) }
    // Then
    #expect(limiter.nextSummary == start + LogLimiter.windowLength)
    let early = limiter.summaries(now: start + .seconds(9), all: false)
    #expect(early.isEmpty)
    let isAdmitted = limiter.admits("a", at: .warning, now: start + .seconds(9))
    #expect(!isAdmitted)
    let sums = limiter.summaries(now: start + .seconds(10), all: false)
    let isAdmittedAgain = limiter.admits("a", at: .warning, now: start + .seconds(10))
    #expect(isAdmittedAgain)
    #expect(sums == [LogLimiter.Summary(kind: "a", level: .warning, count: 6)])
    var admitted = 0
    for number in 0..<2_000 where limiter.admits("kind \(number)", at: .error, now: start) {
      admitted += 1
    }
    #expect(admitted == 2_000)
  }

  @Test(arguments: [Log.Format.text, .json])
  func `texts are truncated to 512 bytes at a character boundary`(format: Log.Format) {
    func line(_ url: String) -> String {
      let fields: KeyValuePairs<String, LogValue> = ["url": .string(url), "status": 200]
      return String(
        decoding: LogLine(.info, message: "request", fields: fields, format: format).bytes,
        as: UTF8.self)
    }
    let long = line("http://a/" + String(repeating: "ü", count: 5_000))
    #expect(long.utf8.count < 700 && long.contains("ü…"))
    #expect(long.contains("200"))
    let exact = String(repeating: "a", count: 512)
    #expect(line(exact).contains(exact))
    #expect(!line(exact).contains("…"))
  }

  @Test(arguments: [Log.Format.text, .json])
  func `a line has the time in UTC to the millisecond`(format: Log.Format) throws {
    let before = Date.now
    let line = LogLine(.info, message: "started", fields: [:], format: format).bytes
    let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
    let text = String(decoding: line, as: UTF8.self).split { $0 == " " || $0 == "\"" }
    let stamp = String(text[format == .json ? 3 : 0])
    let time = try style.parse(stamp)
    #expect(time > before.addingTimeInterval(-0.002) && time <= .now)
    #expect(stamp.utf8.count == "2026-11-23T10:17:21.690Z".utf8.count && stamp.hasSuffix("Z"))
  }
}

extension String {
  /// Returns how often `separator` occurs.
  fileprivate func components(_ separator: Character) -> Int { count { $0 == separator } }
}
