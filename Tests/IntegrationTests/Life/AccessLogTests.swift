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
    try blockUntil("the file is opened again") { access(path, F_OK) == 0 }
    #expect(try client.get("/last").status == 404)
    #expect(try pictor.end() == 0)
    // Then
    let text = contents(of: path)
    #expect(!text.hasPrefix("\n") && text.contains("/last"), "\(text)")
    #expect(contents(of: path + ".1").utf8.count == full)
    #expect(pictor.log.contains("access log lines dropped"))
  }

  @Test func `successes are sampled, failures are not`() throws {
    let path = folder.path + "/access.log"
    let pictor = try PictorProcess(
      in: folder,
      [
        "--log.access_path", path, "--log.access_format", "json", "--log.requests", "all",
        "--log.access_sample", "0",
      ])
    for _ in 0..<5 {
      #expect(try pictor.get("/livez").status == 200)
      #expect(try pictor.get("/missing").status == 404)
    }
    #expect(try pictor.end() == 0)
    let lines = contents(of: path).split(separator: "\n")
    #expect(lines.count == 5)
    #expect(lines.allSatisfy { $0.contains("\"status\":404") })
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
