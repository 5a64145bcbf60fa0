// ErrorBody: the JSON body of error responses.

import Model

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
