// AccessLogTests: the access log of the program, rotated under load.

import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct AccessLogTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  @Test func `a rotation with SIGHUP under load loses no line and writes none twice`() throws {
    // Given
    let path = folder.path + "/access.log"
    let pictor = try PictorProcess(
      in: folder,
      ["--log.access_path", path, "--log.access_format", "combined", "--log.requests", "all"])
    // When
    let client = try pictor.connect()
    for number in 0..<300 {
      #expect(try client.get("/missing-\(number)").status == 404)
      if number % 50 == 25 {
        #expect(rename(path, path + ".\(number)") == 0)
        kill(pictor.id, SIGHUP)
        // The next rotation needs the file that this one makes.
        try blockUntil("the file is opened again") { access(path, F_OK) == 0 }
      }
    }
    #expect(try pictor.end() == 0)
    // Then
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
      .filter { $0.hasPrefix("access.log") }
    #expect(files.count == 7)
    let text = files.map { contents(of: folder.path + "/" + $0) }.joined()
    let numbers = text.split(separator: "\n").compactMap { line -> Int? in
      guard let range = line.firstRange(of: "\"GET /missing-") else { return nil }
      return Int(line[range.upperBound...].prefix { $0 != " " })
    }
    #expect(numbers.sorted() == Array(0..<300))
    #expect(!pictor.log.contains("missing-"))
  }

  @Test func `a file after one that was full begins with a whole line`() throws {
    // Given
    let path = folder.path + "/access.log"
    // The thread sanitizer itself writes a file of 512 KiB.
    let full = 1_000_001
    let pictor = try PictorProcess(
      in: folder,
      ["--log.access_path", path, "--log.access_format", "combined", "--log.requests", "all"],
      wrapper: ["/usr/bin/prlimit", "--fsize=\(full)"])
    let client = try pictor.connect()
    let long = String(repeating: "a", count: 400)
    try blockUntil("the file is full") {
      for _ in 0..<100 {
        let answer = try client.get("/" + long, headers: ["Referer": long, "User-Agent": long])
        #expect(answer.status == 404)
      }
      return contents(of: path).utf8.count == full
    }
    // When
    #expect(rename(path, path + ".1") == 0)
    kill(pictor.id, SIGHUP)
    try blockUntil("lines go to the new file, which is there a moment before") {
      _ = try client.get("/last")
      return contents(of: path).contains("/last")
    }
    #expect(try pictor.end() == 0)
    // Then
    #expect(!contents(of: path).hasPrefix("\n"))
    #expect(contents(of: path + ".1").utf8.count == full)
    #expect(pictor.log.contains("access log lines dropped"))
  }

  @Test func `standard output is a place for the lines, also as a socket and with a stuck reader`()
    throws
  {
    // Given a program whose standard output is a full socket, as of a stuck journal
    var ends: [CInt] = [0, 0]
    try #require(socketpair(AF_UNIX, CInt(SOCK_STREAM.rawValue), 0, &ends) == 0)
    defer { close(ends[0]) }
    _ = fcntl(ends[1], F_SETFL, O_NONBLOCK)
    let filler = [UInt8](repeating: 0x0a, count: 1_000)
    while write(ends[1], filler, filler.count) > 0 {}
    _ = fcntl(ends[1], F_SETFL, 0)
    let pictor = try PictorProcess(
      in: folder,
      [
        "--log.access_path", "/dev/stdout", "--log.access_format", "combined",
        "--log.requests", "all",
      ], wrapper: ["/bin/sh", "-c", "exec \"$@\" >&3", "sh"], inherited: [ends[1]])
    close(ends[1])
    // When nothing is read, requests are answered, and a reopening changes nothing.
    let client = try pictor.connect()
    for number in 0..<20 {
      #expect(try client.get("/missing-\(number)").status == 404)
      if number == 10 { kill(pictor.id, SIGHUP) }
    }
    // Then a reader gets each line
    var text = ""
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while !text.contains("missing-19"), case let count = read(ends[0], &buffer, buffer.count),
      count > 0
    {
      text += String(decoding: buffer[..<count], as: UTF8.self)
    }
    let lines = text.split(separator: "\n").filter { $0.contains("missing-") }
    #expect(lines.count == 20 && lines.allSatisfy { $0.contains(" HTTP/1.1\" 404 ") })
    #expect(!pictor.log.contains("missing-"))
    #expect(try pictor.end() == 0)
  }

  @Test(arguments: ["/dev/stdout", "/dev/stderr"])
  func `lines that go to the log's own output are written by one thread`(path: String) throws {
    // Both streams of the program lead to one file.
    let pictor = try PictorProcess(
      in: folder,
      ["--log.access_path", path, "--log.access_format", "combined", "--log.requests", "all"])
    let client = try pictor.connect()
    for number in 0..<200 { #expect(try client.get("/missing-\(number)").status == 404) }
    #expect(try pictor.end() == 0)
    let lines = pictor.log.split(separator: "\n")
    #expect(
      lines.count { $0.contains("\"GET /missing-") && $0.hasPrefix("127.0.0.1 - - [") } == 200)
    #expect(lines.allSatisfy { $0.hasPrefix("127.0.0.1 - - [") || $0.hasPrefix("{") })
  }

  @Test func `a stream that is closed at the start does not become another file`() throws {
    let pictor = try PictorProcess(
      in: folder, wrapper: ["/bin/sh", "-c", "exec \"$@\" <&- >&-", "sh"])
    #expect(try pictor.get("/livez").status == 200)
    for stream in 0...1 {
      let path = try FileManager.default.destinationOfSymbolicLink(
        atPath: "/proc/\(pictor.id)/fd/\(stream)")
      #expect(path == "/dev/null")
    }
    #expect(try pictor.end() == 0)
  }

  @Test func `a stream that is closed is a mistake, and so is a link`() throws {
    let closed = try PictorProcess(
      in: folder, ["--check-config", "--log.access_path", "/dev/stdout"],
      wrapper: ["/bin/sh", "-c", "exec \"$@\" >&-", "sh"], isServer: false)
    #expect(try closed.end(0) == 1)
    #expect(closed.log.contains("'/dev/stdout' cannot be opened: the program has no such stream"))
    let link = folder.path + "/link"
    #expect(symlink("/dev/stdout", link) == 0)
    let linked = try PictorProcess(
      in: folder, ["--check-config", "--log.access_path", link], isServer: false)
    #expect(try linked.end(0) == 1)
    #expect(
      linked.log.contains("which is not followed; name the file, /dev/stdout or"))
  }

  @Test func `a file that cannot be opened is a mistake with its name`() throws {
    let path = folder.path + "/none/access.log"
    let pictor = try PictorProcess(
      in: folder, ["--check-config", "--log.access_path", path], isServer: false)
    #expect(try pictor.end(0) == 1)
    #expect(pictor.log.contains("log.access_path"))
    #expect(pictor.log.contains(path))
  }
}
