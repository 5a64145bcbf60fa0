// SharedFailureCoding: a failure as bytes, and which failures machines share.

import Model
import Platform

/// The content of a shared failure, within the frame of `SharedEntry`: a version, the kind, two numbers, the times, a
/// text, and the key.
///
/// Shared are the failures that each machine of the same version, limits and libraries would get. Those that may be one
/// machine's own are not: `tooCostly` (its memory and time), crashes (`ofVariant`), and all that are not remembered.
enum SharedFailureCoding {
  private static let version = 1
  /// The longest text, in bytes.
  private static let longestText = 512
  /// The longest entry. A URL has at most 8 KiB.
  private static let longest = 16_384
  /// The longest time, in seconds: 30 days.
  private static let longestTime = 30 * 86_400

  private enum Kind: Int {
    case notFound = 1, tooLarge, unsupported, undecodable, pixels, frames
  }

  // MARK: Writing

  /// Returns `nil` for a failure that is not shared.
  static func encode(_ failure: SharedFailure, since mark: SharedMark) -> [UInt8]? {
    guard let (kind, numbers, text) = parts(of: failure.error), failure.key.isSource,
      (1...longestTime).contains(failure.seconds)
    else { return nil }
    var bytes: [UInt8] = []
    func append(_ number: Int, _ width: Int) {
      for index in (0..<width).reversed() {
        bytes.append(UInt8(truncatingIfNeeded: number >> (8 * index)))
      }
    }
    append(version, 1)
    append(kind.rawValue, 1)
    for number in numbers { append(max(number, 0), 8) }
    append(failure.seconds, 4)
    append(failure.clientSeconds, 4)
    let detail = Array(bounded(text).utf8)
    append(detail.count, 2)
    bytes += detail
    bytes += failure.key.text.utf8
    let entry = SharedEntry.bytes(mark, bytes)
    return entry.count <= longest ? entry : nil
  }

  private static func parts(of error: ImageError) -> (Kind, [Int], String)? {
    switch error {
    case .sourceNotFound(let status): (.notFound, [status, 0], "")
    case .sourceTooLarge(let limit, let key): (.tooLarge, [limit, 0], key)
    case .unsupportedFormat(let detail): (.unsupported, [0, 0], detail)
    case .undecodable(let detail): (.undecodable, [0, 0], detail)
    case .tooManyPixels(let pixels, let limit): (.pixels, [pixels, limit], "")
    case .tooManyFrames(let frames, let limit): (.frames, [frames, limit], "")
    default: nil
    }
  }

  /// The text without control characters, which logs and terminals would obey, and not too long.
  private static func bounded(_ text: String) -> String {
    var bounded = ""
    for scalar in text.unicodeScalars {
      let isControl = scalar.properties.generalCategory == .control
      let next = isControl ? "?" : String(scalar)
      guard bounded.utf8.count + next.utf8.count <= longestText else { break }
      bounded += next
    }
    return bounded
  }

  // MARK: Reading

  /// Reads untrusted bytes. Returns `nil` for anything that `encode` does not write for this source.
  static func decode(_ bytes: [UInt8], as source: CacheKey) -> (SharedMark, SharedFailure)? {
    guard bytes.count <= longest, let (mark, content) = SharedEntry.read(bytes) else { return nil }
    return content.withUnsafeBytes { try? failure(in: $0, as: source) }.map { (mark, $0) }
  }

  private static func failure(
    in bytes: UnsafeRawBufferPointer, as source: CacheKey
  ) throws(EndOfBytes) -> SharedFailure {
    var reader = ByteReader(bytes)
    guard try reader.number(1) == version, let kind = Kind(rawValue: try reader.number(1)) else {
      throw EndOfBytes()
    }
    let numbers = (try reader.number(8), try reader.number(8))
    let (seconds, clientSeconds) = (try reader.number(4), try reader.number(4))
    let detail = try reader.take(try reader.number(2))
    let key = try reader.take(reader.left)
    guard (1...longestTime).contains(seconds), clientSeconds <= seconds,
      let text = String(validating: detail, as: UTF8.self), bounded(text) == text,
      key.elementsEqual(source.text.utf8),
      let error = error(kind, numbers, text)
    else { throw EndOfBytes() }
    return SharedFailure(
      key: source, error: error, seconds: seconds, clientSeconds: clientSeconds)
  }

  private static func error(_ kind: Kind, _ numbers: (Int, Int), _ text: String) -> ImageError? {
    switch kind {
    case .notFound:
      [404, 410].contains(numbers.0) ? .sourceNotFound(status: numbers.0) : nil
    case .tooLarge: .sourceTooLarge(limit: numbers.0, key: text)
    case .unsupported: .unsupportedFormat(detail: text)
    case .undecodable: .undecodable(detail: text)
    case .pixels: .tooManyPixels(pixels: numbers.0, limit: numbers.1)
    case .frames: .tooManyFrames(frames: numbers.0, limit: numbers.1)
    }
  }
}
