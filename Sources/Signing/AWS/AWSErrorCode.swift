// AWSErrorCode: what the body of an error of an object store says.

/// The code of an error in XML (Amazon S3 API Reference, "REST error responses").
public enum AWSErrorCode {
  /// Returns the `<Code>`: 1 to 64 letters, digits and dots; `nil` without one. Everything else in
  /// the body may repeat parts of the request, so it is not used.
  public static func find(in body: [UInt8]) -> String? {
    let text = String(decoding: body, as: UTF8.self)
    guard let start = text.firstRange(of: "<Code>"),
      let end = text[start.upperBound...].firstRange(of: "</Code>")
    else { return nil }
    let code = text[start.upperBound..<end.lowerBound]
    let isCode =
      (1...64).contains(code.utf8.count)
      && code.utf8.allSatisfy { byte in
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a, 0x2e: true
        default: false
        }
      }
    return isCode ? String(code) : nil
  }
}
