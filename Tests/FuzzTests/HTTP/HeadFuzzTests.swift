// HeadFuzzTests: requests on a connection, damaged and in pieces: where each begins and ends.

import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct HeadFuzzTests {
  private static let words: [[UInt8]] = [
    "\r\n", "\r", "\n", "\r\n\r\n", " ", "\t", ":", ";", ",", "\"", "GET / HTTP/1.1\r\n",
    "HTTP/1.0",
    "Host: a\r\n", "Content-Length: 3\r\n", "Transfer-Encoding: chunked\r\n", "Content-Length",
    "chunked", "identity", "0\r\n\r\n", "5;x=y\r\n", "ffffffffffffffff", "Cookie: a=\"b\"\r\n",
    " folded\r\n", "+3", "-1", "0x3",
  ].map { Array($0.utf8) }

  /// Makes a request with a body of either kind, or without one.
  private static func request(_ random: inout SeededGenerator) -> String {
    var text = random.pick("GET", "HEAD", "POST", "DELETE", "OPTIONS")
    text += " " + random.pick("/", "/image?url=a&w=3", "http://a/b?c", "*")
    text += " HTTP/1." + random.pick("1", "1", "1", "0") + "\r\n"
    var fields = ["Host: " + random.pick("a", "a.example:80", "[::1]")]
    for _ in 0..<random.number(0...3) {
      fields.append(
        random.pick("Accept: */*", "Cookie: a=b; c=\"d\"", "X-A:", "User-Agent: \u{e4} (x; y)"))
    }
    let body = String(repeating: random.pick("x", "\r\n", "0"), count: random.number(0...20))
    switch random.number(0...3) {
    case 0: fields.append("Content-Length: \(body.utf8.count)")
    case 1: fields.append("Transfer-Encoding: " + random.pick("chunked", "Chunked "))
    default: break
    }
    text += fields.shuffled(using: &random).joined(separator: "\r\n") + "\r\n\r\n"
    if text.contains("Content-Length") { return text + body }
    guard text.contains("Transfer-Encoding") else { return text }
    if !body.isEmpty {
      text += String(body.utf8.count, radix: 16) + "\r\n" + body + "\r\n"
    }
    return text + "0\r\n" + random.pick("", "X-Trailer: y\r\n") + "\r\n"
  }

  /// The end of a connection's bytes for the checker.
  private struct End: Equatable {
    var isAccepted = true
    var requests = 0
    var isBetweenRequests = true
  }

  /// Checks the bytes in pieces of these lengths, again and again.
  private static func end(of bytes: [UInt8], pieces: [Int]) -> End {
    var framing = RequestFraming()
    var place = 0
    var turn = 0
    while place < bytes.count {
      let count = min(pieces[turn % pieces.count], bytes.count - place)
      let verdict = bytes[place..<place + count].withUnsafeBytes { framing.take($0) }
      guard verdict == .accepted else {
        return End(isAccepted: false, requests: framing.wholeRequests, isBetweenRequests: false)
      }
      place += count
      turn += 1
    }
    return End(requests: framing.wholeRequests, isBetweenRequests: framing.isBetweenRequests)
  }

  @Test func `a checked request ends where a simple reader finds its end, in pieces as at once`()
    throws
  {
    var accepted = 0
    var refused = 0
    try Fuzz.run(
      "request-head", usual: 4_000,
      make: { random in
        var bytes = (0..<random.number(1...3)).flatMap { _ in Array(Self.request(&random).utf8) }
        Damage.apply(to: &bytes, words: Self.words, using: &random)
        return bytes
      },
      check: { bytes in
        let whole = Self.end(of: bytes, pieces: [max(bytes.count, 1)])
        for pieces in [[1], [2, 1, 5], [7, 64]] {
          let end = Self.end(of: bytes, pieces: pieces)
          try hold(end == whole, "in pieces of \(pieces): \(end), at once \(whole)")
        }
        guard whole.isAccepted else {
          refused += 1
          return
        }
        accepted += 1
        guard whole.isBetweenRequests else { return }
        let count = SimpleReader.count(of: bytes)
        try hold(
          count == whole.requests, "\(whole.requests) requests, the reader finds \(count ?? -1)")
      })
    #expect(accepted > 0 && refused > 0)
  }
}

/// Counts requests line by line, as a lenient proxy might: the last of two lengths counts, names
/// have any case, and blanks around values do not matter.
private enum SimpleReader {
  /// Returns the number of requests, or `nil` if the bytes end within one.
  static func count(of bytes: [UInt8]) -> Int? {
    var rest = bytes[...]
    var count = 0
    while true {
      while rest.starts(with: [13, 10]) { rest = rest.dropFirst(2) }
      guard !rest.isEmpty else { return count }
      var length = 0
      var isChunked = false
      guard line(&rest) != nil else { return nil }
      while let field = line(&rest), !field.isEmpty {
        let parts = field.split(separator: ":", maxSplits: 1)
        let value = parts.count > 1 ? parts[1].filter { $0 != " " && $0 != "\t" }.lowercased() : ""
        switch parts[0].lowercased() {
        case "content-length": length = Int(value) ?? 0
        case "transfer-encoding": isChunked = value == "chunked"
        default: break
        }
      }
      if isChunked {
        while let size = line(&rest) {
          guard let bytes = Int(size.prefix { $0 != ";" }, radix: 16) else { return nil }
          if bytes == 0 { break }
          guard rest.count >= bytes + 2 else { return nil }
          rest = rest.dropFirst(bytes + 2)
        }
        while let trailer = line(&rest), !trailer.isEmpty {}
      } else {
        guard rest.count >= length else { return nil }
        rest = rest.dropFirst(length)
      }
      count += 1
    }
  }

  /// Takes a line up to CRLF, each byte as a character.
  private static func line(_ bytes: inout ArraySlice<UInt8>) -> String? {
    var index = bytes.startIndex
    while index + 1 < bytes.endIndex {
      if bytes[index] == 13, bytes[index + 1] == 10 {
        let line = String(String.UnicodeScalarView(bytes[..<index].map(Unicode.Scalar.init)))
        bytes = bytes[(index + 2)...]
        return line
      }
      index += 1
    }
    return nil
  }
}
