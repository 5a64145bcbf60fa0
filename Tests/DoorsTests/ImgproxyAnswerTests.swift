// ImgproxyAnswerTests: signatures of imgproxy, its answers to failures, and mutated addresses.

import Core
import Testing

@testable import Doors

extension ImgproxyTests {
  static let signature = "zEW2X-ayrKDBBQqKpNx56e4hb9sRXA_z455li7iG3Zg"
  static let signed = "/rs:fit:300/plain/local:///hills.jpg"

  static func signedDoor(bytes: Int = 0) -> ImgproxyDoor {
    door {
      $0.keys = [Array("other".utf8), Array("secret".utf8)]
      $0.salts = [Array("salt".utf8), Array("hello".utf8)]
      $0.signatureBytes = bytes
    }
  }

  @Test func `signatures of each pair are accepted`() throws {
    let translation = try Self.signedDoor().translate(
      DoorAddress(path: "/" + Self.signature + Self.signed))
    #expect(translation.isSigned)
    let merged = "/" + Self.signature + "/rs:fit:300/plain/local:/hills.jpg"
    #expect(Self.own(merged, Self.signedDoor()) == "url=local:///hills.jpg&w=300")
    let unsigned = try Self.door().translate(DoorAddress(path: "/" + Self.signature + Self.signed))
    #expect(!unsigned.isSigned)
  }

  @Test func `altered signatures and paths are forbidden`() {
    let path = Array(("/" + Self.signature + Self.signed).utf8)
    for index in 1..<path.count where path[index] != UInt8(ascii: "/") {
      for change in [UInt8(1), 2, 4] {
        var altered = path
        altered[index] ^= change
        let text = String(decoding: altered, as: UTF8.self)
        let outcome = Self.own(text, Self.signedDoor())
        // A path that is no address at all is 404 before its signature is read.
        #expect(outcome == "403 Forbidden" || outcome == "404 Invalid URL", "\(text)")
        if index <= Self.signature.utf8.count, change == 1 {
          #expect(outcome == "403 Forbidden", "\(text)")
        }
      }
    }
    for signature in ["", "_", "unsafe", Self.signature + "=", String(Self.signature.dropLast())] {
      #expect(Self.own("/" + signature + Self.signed, Self.signedDoor()) == "403 Forbidden")
    }
  }

  @Test func `signatures may be truncated`() {
    let short = Base64URL.encode((Base64URL.decode(Self.signature) ?? []).prefix(8))
    #expect(short.utf8.count == 11)
    let path = "/" + short + Self.signed
    #expect(Self.own(path, Self.signedDoor(bytes: 8)) == "url=local:///hills.jpg&w=300")
    #expect(Self.own(path, Self.signedDoor()) == "403 Forbidden")
    let whole = "/" + Self.signature + Self.signed
    #expect(Self.own(whole, Self.signedDoor(bytes: 8)) == "403 Forbidden")
  }

  // MARK: Answers

  @Test func `failures have imgproxy's status`() {
    let errors: [(ImageError, Int, String)] = [
      (.invalidSignature(reason: "x"), 403, "Forbidden"),
      (.expiredSignature(1), 404, "Invalid URL"),
      (.unknownParameter("limitside"), 404, "Invalid URL"),
      (.forbiddenSource(reason: "x", detail: ""), 404, "Source is unreachable"),
      (.sourceNotFound(status: 404), 404, "Source is unreachable"),
      (
        .remembered(.sourceNotFound(status: 410), seconds: 9, isRepeated: true), 404,
        "Source is unreachable"
      ),
      (.sourceError(status: 403), 404, "Source is unreachable"),
      (.sourceError(status: 500), 502, "Source is unreachable"),
      (.sourceUnreachable(detail: ""), 502, "Source is unreachable"),
      (.undecodable(detail: ""), 422, "Invalid source"),
      (.sourceTimeout(detail: ""), 504, "Timeout"),
      (.internal(detail: "secret"), 500, "Internal error"),
      (.draining, 503, "the server is shutting down"),
    ]
    for (error, status, body) in errors {
      let answer = Self.door().answer(to: error)
      #expect(answer.status == status && answer.body == body, "\(error)")
      #expect(answer.contentType == "text/plain")
    }
  }

  // MARK: Fuzz

  @Test func `mutated addresses are answered always`() {
    var known = Set(TransformParameter.table.map(\.name))
    known.formUnion(["url", "watermark", "download", "filename"])
    let options = Self.golden.split(separator: "\n").map { Self.cells($0)[0] }
    let whole = Self.sources.split(separator: "\n").map { Self.cells($0)[0] }
    let pieces = [
      ":", "/", "%", "@", "-", ".", "1e9", "99999999999", "é", "plain", "sm", "\u{0}", "",
    ]
    let doors = [
      Self.door(), Self.signedDoor(), Self.door { $0.presetsOnly = true },
      Self.door {
        $0.allowsLimits = true
        $0.separator = "-"
        $0.baseURL = "https://example.com"
        $0.allowedSources = ["*://*.*/*a*"]
      },
    ]
    var generator = FixedGenerator(state: 20)
    for _ in 0..<6_000 {
      var path = Array(
        (Bool.random(using: &generator)
          ? whole.randomElement(using: &generator) ?? ""
          : "/_/\(options.randomElement(using: &generator) ?? "")/"
            + "\(options.randomElement(using: &generator) ?? "")/plain/local:///a.jpg").utf8)
      for _ in 0..<Int.random(in: 0...4, using: &generator) {
        let start = Int.random(in: 0...path.count, using: &generator)
        let end = min(path.count, start + Int.random(in: 0...3, using: &generator))
        path.replaceSubrange(
          start..<end, with: (pieces.randomElement(using: &generator) ?? "").utf8)
      }
      let text = String(decoding: path, as: UTF8.self)
      let door = doors[Int.random(in: 0..<doors.count, using: &generator)]
      #expect(Self.own(text, door) == Self.own(text, door))
      guard let translation = try? door.translate(DoorAddress(path: text)) else { continue }
      let names = translation.parameters.map(\.name)
      #expect(known.isSuperset(of: names) && Set(names).count == names.count, "\(text)")
      #expect(translation["url"] != nil && !translation.query.contains("%00"))
      #expect(translation.parameters.allSatisfy { !$0.value.isEmpty })
    }
  }

  @Test func `long addresses are read`() {
    let many = String(repeating: "w:1/", count: 2_000)
    #expect(Self.own("/_/" + many + "plain/local:///a.jpg") == "404 Invalid URL")
    let long = String(repeating: "a", count: 8_000)
    #expect(Self.own("/_/w:\(long)/plain/local:///a.jpg") == "404 Invalid URL")
    #expect(Self.own("/_/cb:\(long)/plain/local:///a.jpg") == "url=local:///a.jpg")
    let stars = Self.door { $0.allowedSources = ["local:///*a*a*a*a*b"] }
    #expect(Self.own("/_/plain/local:///" + long, stars) == "404 Invalid URL")
  }
}
