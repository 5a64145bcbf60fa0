// AWSRequest: what a signature of AWS covers, in canonical form.

import Model

/// A request that is to be signed (AWS Signature Version 4, "Create a canonical request").
public struct AWSRequest: Sendable {
  /// The body, as the signature covers it.
  public enum Payload: Hashable, Sendable {
    /// No body.
    case empty
    /// A body with this SHA-256, 64 hexadecimal digits in lower case.
    case hash(String)
    /// A body that the signature does not cover. Only TLS protects it.
    case unsigned

    /// Returns the payload for the bytes of a body.
    public static func bytes(_ body: [UInt8]) -> Payload { .hash(HMAC.hexSHA256(of: body)) }

    /// The text in the canonical request and in `X-Amz-Content-Sha256`.
    var text: String {
      switch self {
      // SHA-256 of no bytes.
      case .empty: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
      case .hash(let digits): digits
      case .unsigned: "UNSIGNED-PAYLOAD"
      }
    }
  }

  /// The method, in capitals.
  public var method: String
  /// The value of `Host`, as it is sent: with the port, unless it is the scheme's usual one.
  public var host: String
  /// The path exactly as it is sent (`encodedPath`). S3 does not normalize paths.
  public var path: String
  /// The parameters of the query, decoded, in any order.
  public var query: [(name: String, value: String)]
  /// Further fields that the signature covers, all `x-amz-…` ones included. Sent as they are.
  public var fields: [HeaderField]
  /// The body.
  public var payload: Payload

  /// Creates a request.
  public init(
    method: String = "GET", host: String, path: String,
    query: [(name: String, value: String)] = [], fields: [HeaderField] = [],
    payload: Payload = .empty
  ) {
    self.method = method
    self.host = host
    self.path = path
    self.query = query
    self.fields = fields
    self.payload = payload
  }

  /// Returns a path as S3 signs it: all but letters, digits, `-._~` and `/` percent-encoded.
  public static func encodedPath(_ path: String) -> String {
    PercentEncoding.encodePath(path)
  }

  /// The parameters as they are signed, encoded and sorted. A request may send them in this form.
  public var canonicalQuery: String {
    query.map { (PercentEncoding.encode($0.name), PercentEncoding.encode($0.value)) }
      // All characters are ASCII, so this is the order of their bytes.
      .sorted { $0 < $1 }.map { "\($0)=\($1)" }.joined(separator: "&")
  }

  /// Returns the canonical request and the list of signed fields, with further fields.
  func canonical(with more: [HeaderField]) -> (text: String, signedFields: String) {
    var values: [String: [String]] = ["host": [host]]
    for field in fields + more {
      values[field.name.lowercased(), default: []].append(Self.collapsed(field.value))
    }
    let names = values.keys.sorted()
    let lines = names.map { "\($0):\((values[$0] ?? []).joined(separator: ","))\n" }.joined()
    let signed = names.joined(separator: ";")
    let parts = [method, path, canonicalQuery, lines, signed, payload.text]
    return (parts.joined(separator: "\n"), signed)
  }

  /// Returns a value with one space for each run of spaces.
  private static func collapsed(_ value: String) -> String {
    value.split(separator: " ").joined(separator: " ")
  }
}
