// JSON: encodes the server's JSON, with keys in order and slashes as they are.

import FoundationEssentials

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
