// AWSSignatureCheck: recomputes the signature of a request to S3 from what a server received.

import CGLib
import Glibc

/// What a store knows of its client. It shares no code with the signer.
public struct AWSSignatureCheck: Sendable {
  private let accessKey: String
  private let secret: String
  private let region: String

  /// Creates a check for one client.
  public init(accessKey: String, secret: String, region: String) {
    self.accessKey = accessKey
    self.secret = secret
    self.region = region
  }

  /// Returns why a request is refused; `nil` if it is signed correctly.
  public func problem(in request: Origin.Request) -> String? {
    guard let authorization = request.headers["authorization"],
      let date = request.headers["x-amz-date"],
      let hash = request.headers["x-amz-content-sha256"]
    else { return "a field of the signature is missing" }
    let scope = "\(date.prefix(8))/\(region)/s3/aws4_request"
    let beginning = "AWS4-HMAC-SHA256 Credential=\(accessKey)/\(scope), SignedHeaders="
    let parts = authorization.dropFirst(beginning.count).split(separator: ", Signature=")
    guard authorization.hasPrefix(beginning), parts.count == 2 else {
      return "another form: \(authorization)"
    }
    let names = parts[0].split(separator: ";").map(String.init)
    // Every field of AWS, and the host.
    let needed = request.headers.keys.filter { $0 == "host" || $0.hasPrefix("x-amz-") }
    guard Set(names).isSuperset(of: needed) else { return "not all fields are signed" }
    guard hash == "UNSIGNED-PAYLOAD" || hash == Self.digest(request.body) else {
      return "the body has another hash"
    }
    let target = request.target.split(
      separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    var lines = [request.method, String(target[0]), target.count > 1 ? String(target[1]) : ""]
    for name in names {
      guard let value = request.headers[name] else { return "\(name) is signed and not sent" }
      lines.append("\(name):\(value)")
    }
    lines += ["", String(parts[0]), hash]
    let canonical = Self.digest(Array(lines.joined(separator: "\n").utf8))
    var key = Array("AWS4\(secret)".utf8)
    for part in scope.split(separator: "/") { key = Self.bytes(Self.mac(String(part), key: key)) }
    let text = "AWS4-HMAC-SHA256\n\(date)\n\(scope)\n\(canonical)"
    return Self.mac(text, key: key) == String(parts[1]) ? nil : "another signature"
  }

  private static func digest(_ bytes: [UInt8]) -> String {
    guard let text = g_compute_checksum_for_data(G_CHECKSUM_SHA256, bytes, gsize(bytes.count))
    else { return "" }
    defer { g_free(text) }
    return String(cString: text)
  }

  private static func mac(_ message: String, key: [UInt8]) -> String {
    let bytes = Array(message.utf8)
    guard
      let text = g_compute_hmac_for_data(
        G_CHECKSUM_SHA256, key, gsize(key.count), bytes, gsize(bytes.count))
    else { return "" }
    defer { g_free(text) }
    return String(cString: text)
  }

  private static func bytes(_ hexadecimal: String) -> [UInt8] {
    let digits = Array(hexadecimal)
    return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
      UInt8(String(digits[$0...($0 + 1)]), radix: 16)
    }
  }
}
