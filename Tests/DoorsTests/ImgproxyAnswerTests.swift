// ImgproxyAnswerTests: signatures of imgproxy, and its answers to failures.

import Core
import Testing

@testable import Doors

extension ImgproxyTests {
  static let signature = "zEW2X-ayrKDBBQqKpNx56e4hb9sRXA_z455li7iG3Zg"
  static let signed = "/rs:fit:300/plain/local:///hills.jpg"
  private static let hills = "url=local:///hills.jpg w=300"

  private static func signedKit(bytes: Int = 0) -> DoorKit {
    kit {
      $0.keys = [Array("other".utf8), Array("secret".utf8)]
      $0.salts = [Array("salt".utf8), Array("hello".utf8)]
      $0.signatureBytes = bytes
    }
  }

  @Test func `signatures of each pair are accepted`() throws {
    let path = "/" + Self.signature + Self.signed
    let kit = Self.signedKit()
    #expect(try kit.door.translate(kit.address(path)).isSigned)
    kit.expect("/\(Self.signature)/rs:fit:300/plain/local:/hills.jpg > \(Self.hills)")
    #expect(try !Self.kit().door.translate(kit.address(path)).isSigned)
  }

  @Test func `altered signatures and paths are forbidden`() {
    let path = Array(("/" + Self.signature + Self.signed).utf8)
    for index in 1..<path.count where path[index] != UInt8(ascii: "/") {
      for change in [UInt8(1), 2, 4] {
        var altered = path
        altered[index] ^= change
        let text = String(decoding: altered, as: UTF8.self)
        let body = Self.signedKit().refusal(text)?.body
        // A path that is no address at all is 404 before its signature is read.
        #expect(body == "Forbidden" || body == "Invalid URL", "\(text)")
        if index <= Self.signature.utf8.count, change == 1 {
          #expect(body == "Forbidden", "\(text)")
        }
      }
    }
    for signature in ["", "_", "unsafe", Self.signature + "=", String(Self.signature.dropLast())] {
      #expect(Self.signedKit().refusal("/" + signature + Self.signed)?.body == "Forbidden")
    }
  }

  @Test func `signatures may be truncated`() {
    let short = Base64URL.encode((Base64URL.decode(Self.signature) ?? []).prefix(8))
    #expect(short.utf8.count == 11)
    Self.signedKit(bytes: 8).expect(
      "/\(short)\(Self.signed) > \(Self.hills) | /\(Self.signature)\(Self.signed) > 403…")
    Self.signedKit().expect("/\(short)\(Self.signed) > 403…")
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
      let answer = Self.kit().door.answer(to: error)
      #expect(answer.status == status && answer.body == body, "\(error)")
      #expect(answer.contentType == "text/plain")
    }
  }

  @Test func `long addresses are read`() {
    let many = String(repeating: "w:1/", count: 2_000)
    let long = String(repeating: "a", count: 8_000)
    Self.kit().expect("\(many)w:1 > 404 width: at most 1000… | w:\(long) > 404…")
    Self.kit().expect("cb:\(long) > [cachebuster]")
    let stars = Self.kit("/_/plain/*") { $0.allowedSources = ["local:///*a*a*a*a*b"] }
    stars.expect("local:///\(long) > 404…")
  }
}
