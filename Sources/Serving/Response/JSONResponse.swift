// JSONResponse: the JSON of endpoints and of errors, and how all JSON is encoded.

import Core
import FoundationEssentials

/// Encoded JSON with its status and fields.
struct JSONResponse: Sendable {
  let bytes: [UInt8]
  let status: Int
  /// Fields besides those that every response has.
  var fields: [(name: StaticString, value: String)] = []
  /// The value of `Content-Type`; only `/metrics` and doors have another text than JSON.
  var contentType = "application/json"
  /// The request fields that decide about the form.
  var vary: String?
  /// Whether the response closes its connection. `nil` if it does so while the server drains.
  var closes: Bool?
}

extension JSONResponse {
  /// Encodes a value in a form that people and programs can read.
  ///
  /// - Throws: `internal` for a value that cannot be encoded, such as one with an infinite number.
  init(
    _ content: some Encodable, status: Int = 200,
    fields: [(name: StaticString, value: String)] = []
  ) throws(ImageError) {
    guard let json = JSON.bytes(of: content, isForPeople: true) else {
      throw .internal(detail: "a response that cannot be encoded")
    }
    self.init(bytes: json, status: status, fields: fields)
  }
}

extension JSONResponse {
  /// Creates a response with the form of a text that the client prefers.
  init(
    _ text: CodedText, for context: RequestContext, status: Int = 200,
    contentType: String = "application/json", varyingBy fields: String = "Accept-Encoding"
  ) {
    let gzip = text.gzip.flatMap { context.prefersGzip ? $0 : nil }
    self.init(
      bytes: gzip ?? text.plain, status: status,
      fields: gzip == nil ? [] : [("Content-Encoding", "gzip")], contentType: contentType,
      vary: fields)
  }
}

/// The encoder of all JSON that the server sends.
enum JSON {
  /// Encodes a value.
  ///
  /// - Parameter isForPeople: whether to indent it and to end it with a line break.
  /// - Returns: `nil` for a value that cannot be encoded, such as one with an infinite number.
  static func bytes(of content: some Encodable, isForPeople: Bool = false) -> [UInt8]? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    if isForPeople { encoder.outputFormatting.insert(.prettyPrinted) }
    guard let json = try? encoder.encode(content) else { return nil }
    return Array(json) + (isForPeople ? [UInt8(ascii: "\n")] : [])
  }
}

/// Encodes `{"error":{"code":"…","message":"…","parameter":"…","request_id":"…"}}`.
struct ErrorBody: Encodable {
  private struct Content: Encodable {
    let code: String
    let message: String
    let parameter: String?
    let request_id: String
  }

  private let error: Content

  /// Creates the public description of an error.
  ///
  /// - Parameters:
  ///   - explains: whether the message names the configuration's key that decides, for operators.
  ///   - hint: a possible mistake of the client, added to the message.
  init(_ error: ImageError, id: String, explains: Bool, hint: String? = nil) {
    let message = explains ? error.explainedMessage : error.message
    self.error = Content(
      code: error.code,
      message: SecretMask.masked(hint.map { "\(message); \($0)" } ?? message),
      parameter: error.parameter, request_id: id)
  }

  /// The encoded body; a constant if encoding fails, which no client input can cause.
  var json: [UInt8] {
    guard let json = JSON.bytes(of: self) else {
      return Array(#"{"error":{"code":"internal","message":"","request_id":""}}"#.utf8)
    }
    return json + [UInt8(ascii: "\n")]
  }
}
