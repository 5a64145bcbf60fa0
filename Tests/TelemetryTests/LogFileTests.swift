// LogFileTests: access lines in a file of their own, across rotations and faults.

import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import Core

@Suite(.onOwnThreads) struct LogFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func settings(_ path: String, _ format: AccessFormat = .logfmt) -> LogSettings {
    var settings = LogSettings()
    settings.access.path = path
    settings.access.format = format
    return settings
  }

  private func lines(_ path: String) throws -> [String] {
    let text = String(decoding: try Data(contentsOf: URL(fileURLWithPath: path)), as: UTF8.self)
    #expect(text.isEmpty || text.hasSuffix("\n"))
    return text.split(separator: "\n").map(String.init)
  }

  private func line(_ number: Int) -> CombinedLine {
    CombinedLine(
      client: nil, user: nil, method: "GET", target: "/\(number)", version: "HTTP/1.1", status: 200,
      bytes: 1, referer: nil, userAgent: nil)
  }

  @Test func `across rotations no line is lost, and none is written twice`() throws {
    // Given
    let path = folder.path + "/access.log"
    let main = try LogQueue(format: .text, descriptor: open("/dev/null", O_WRONLY))
    let plain = Log(level: .info, queue: main)
    let access = try AccessLog(settings(path), main: main, log: plain)
    let log = Log(level: .info, queue: main, access: access)
    // When
    for number in 0..<2_000 {
      log.request(.info, fields: ["number": .int(number)], combined: line(number))
      if number % 200 == 199 {
        #expect(rename(path, path + ".\(number)") == 0)
        log.reopen()
      }
    }
    access.stop(within: .seconds(10))
    // Then
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(files.count == 11)
    let found = try files.flatMap { try lines(folder.path + "/" + $0) }
      .compactMap { $0.split(separator: "=").last.flatMap { Int($0) } }
    #expect(found.sorted() == Array(0..<2_000))
    #expect(log.figures.written == 2_000)
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o777 & ~0o640 == 0)
    main.stop(within: .seconds(10))
  }

  @Test func `a file that cannot be opened again keeps the old one open, with a warning`() throws {
    let inner = folder.path + "/logs"
    #expect(mkdir(inner, 0o755) == 0)
    var ends: [CInt] = [0, 0]
    try #require(pipe(&ends) == 0)
    let reading = ends[0]
    let main = try LogQueue(format: .text, descriptor: ends[1])
    let plain = Log(level: .info, queue: main)
    let access = try AccessLog(settings(inner + "/a", .combined), main: main, log: plain)
    let log = Log(level: .info, queue: main, access: access)
    #expect(rename(inner, folder.path + "/moved") == 0)
    log.reopen()
    log.request(.warning, fields: ["number": .int(1)], combined: line(1))
    access.stop(within: .seconds(10))
    main.stop(within: .seconds(10))
    #expect(try lines(folder.path + "/moved/a").count == 1)
    var buffer = [UInt8](repeating: 0, count: 10_000)
    let count = read(reading, &buffer, buffer.count)
    let text = String(decoding: buffer[..<max(count, 0)], as: UTF8.self)
    #expect(text.contains("cannot be opened again"))
    // A failure of the server is in both logs.
    #expect(text.contains("number=1"))
  }

  @Test func `links, folders and pipes are not opened, and a check creates nothing`() throws {
    let file = folder.path + "/file"
    #expect(LogFile.problem(of: file) == nil)
    #expect(access(file, F_OK) != 0)
    #expect(LogFile.problem(of: folder.path + "/missing/file") != nil)
    _ = try LogFile(file)
    #expect(LogFile.problem(of: file) == nil)
    #expect(symlink(file, folder.path + "/link") == 0)
    #expect(mkfifo(folder.path + "/pipe", 0o600) == 0)
    for (path, problem) in [
      ("/link", "symbolic link"), ("/pipe", "not a regular file, /dev/stdout or /dev/stderr"),
      ("", "Is a directory"),
    ] {
      #expect(throws: SystemError.self) { try LogFile(folder.path + path) }
      #expect(LogFile.problem(of: folder.path + path)?.contains(problem) == true)
    }
  }

  @Test func `lines beyond the limit are counted and reported in the log`() throws {
    var ends: [CInt] = [0, 0]
    try #require(pipe(&ends) == 0)
    let main = try LogQueue(format: .text, descriptor: ends[1])
    let log = Log(level: .info, queue: main)
    let file = try LogFile(folder.path + "/a")
    let queue = try LogQueue(format: .text, file: file, reports: log, limit: 200)
    for number in 0..<1_000 { queue.add(line(number).encoded(at: 0)) }
    queue.add([UInt8](repeating: 0x61, count: 300))
    queue.stop(within: .seconds(10))
    main.stop(within: .seconds(10))
    var figures = Figures()
    queue.add(to: &figures)
    #expect(figures.dropped > 0)
    #expect(figures.written + figures.dropped == 1_001)
    #expect(try figures.written == lines(folder.path + "/a").count)
    var buffer = [UInt8](repeating: 0, count: 100_000)
    let count = read(ends[0], &buffer, buffer.count)
    #expect(
      String(decoding: buffer[..<max(count, 0)], as: UTF8.self)
        .contains("access log lines dropped"))
  }
}
