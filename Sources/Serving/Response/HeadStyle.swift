// HeadStyle: how response heads are passed to libmicrohttpd, depending on its version.

import CMicrohttpd

/// How a response head is passed to libmicrohttpd.
enum HeadStyle: Hashable, Sendable {
  /// As the value of one field, overwritten in place for each hit. Saves allocations, but relies on
  /// undocumented behaviour of libmicrohttpd (see `Response`); only for tested versions.
  case block
  /// Field by field, in a new response each time. Works with any version, but is slower.
  case fields

  /// The version that `block` was tested with.
  static let testedVersion = "0.9.75"

  /// Selects the style for a version of libmicrohttpd.
  init(libraryVersion: String) {
    self = libraryVersion == Self.testedVersion ? .block : .fields
  }

  /// The version of libmicrohttpd that this process uses.
  static var libraryVersion: String { MHD_get_version().map { String(cString: $0) } ?? "unknown" }

  /// Adds a head to a response.
  ///
  /// - Returns: `nil` if libmicrohttpd refuses the head; otherwise the block's address, valid as
  ///   long as the response, or an inner `nil` for `fields`.
  func add(_ head: ResponseHead, to response: OpaquePointer) -> UnsafeMutablePointer<UInt8>?? {
    switch self {
    case .block: Self.addBlock(head, to: response).map { .some($0) }
    case .fields: Self.addFields(head, to: response) ? .some(nil) : nil
    }
  }

  private static func addBlock(
    _ head: ResponseHead, to response: OpaquePointer
  ) -> UnsafeMutablePointer<UInt8>? {
    let name = UnsafeRawPointer(ResponseHead.firstName.utf8Start)
      .assumingMemoryBound(to: CChar.self)
    guard addBlanks(head.bytes.count, named: name, to: response),
      let value = MHD_get_response_header(response, name)
    else { return nil }
    // The value is libmicrohttpd's own heap copy of the blanks, so it may be written to.
    let block = UnsafeMutableRawPointer(mutating: value).assumingMemoryBound(to: UInt8.self)
    head.bytes.withUnsafeBufferPointer { bytes in
      if let start = bytes.baseAddress { block.update(from: start, count: bytes.count) }
    }
    return block
  }

  /// As many blanks as most heads are long, and a zero.
  private static let blanks: [CChar] =
    Array(repeating: CChar(bitPattern: UInt8(ascii: " ")), count: 2_047) + [0]

  /// Adds a field of `count` blanks.
  private static func addBlanks(
    _ count: Int, named name: UnsafePointer<CChar>, to response: OpaquePointer
  ) -> Bool {
    guard count < blanks.count else {
      let longer =
        [CChar](repeating: CChar(bitPattern: UInt8(ascii: " ")), count: count) + [0]
      return MHD_add_response_header(response, name, longer) == .YES
    }
    // The end of the blanks, which has its zero.
    return blanks.withUnsafeBufferPointer { blanks in
      guard let start = blanks.baseAddress else { return false }
      return MHD_add_response_header(response, name, start + (blanks.count - 1 - count)) == .YES
    }
  }

  private static func addFields(_ head: ResponseHead, to response: OpaquePointer) -> Bool {
    head.fields.allSatisfy { MHD_add_response_header(response, $0.name, $0.value) == .YES }
  }
}
