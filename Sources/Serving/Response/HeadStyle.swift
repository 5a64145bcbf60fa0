// HeadStyle: how heads are given to libmicrohttpd, which depends on its version.

import CMicrohttpd

/// How a response's head is handed to libmicrohttpd.
enum HeadStyle: Hashable, Sendable {
  /// As the value of one field, which is overwritten in place from hit to hit. It saves 45 allocations a response and
  /// rests on what only the source of libmicrohttpd says (see `Response`): for versions that were read and tested.
  case block
  /// Field by field, in a new response for each answer: right with any version, and slower.
  case fields

  /// The version that `block` was tested with.
  static let testedVersion = "0.9.75"

  /// The style for a version of libmicrohttpd.
  init(libraryVersion: String) {
    self = libraryVersion == Self.testedVersion ? .block : .fields
  }

  /// The version of the library that this process runs with.
  static var libraryVersion: String { MHD_get_version().map { String(cString: $0) } ?? "unknown" }

  /// Adds a head; `nil` where libmicrohttpd refuses it.
  ///
  /// - Returns: The place of the block, valid as long as the response; inside, `nil` where there is none.
  func add(_ head: ResponseHead, to response: OpaquePointer) -> UnsafeMutablePointer<UInt8>?? {
    switch self {
    case .block: Self.addBlock(head, to: response).map { .some($0) }
    case .fields: Self.addFields(head, to: response) ? .some(nil) : nil
    }
  }

  private static func addBlock(
    _ head: ResponseHead, to response: OpaquePointer
  ) -> UnsafeMutablePointer<UInt8>? {
    var placeholder = [CChar](
      repeating: CChar(bitPattern: UInt8(ascii: " ")), count: head.bytes.count)
    placeholder.append(0)
    let name = UnsafeRawPointer(ResponseHead.firstName.utf8Start)
      .assumingMemoryBound(to: CChar.self)
    guard MHD_add_response_header(response, name, placeholder) == .YES,
      let value = MHD_get_response_header(response, name)
    else { return nil }
    // The value is MHD's own heap copy of `placeholder`, not a constant: libmicrohttpd hands it out as it stores it.
    let block = UnsafeMutableRawPointer(mutating: value).assumingMemoryBound(to: UInt8.self)
    head.bytes.withUnsafeBufferPointer { bytes in
      if let start = bytes.baseAddress { block.update(from: start, count: bytes.count) }
    }
    return block
  }

  private static func addFields(_ head: ResponseHead, to response: OpaquePointer) -> Bool {
    head.fields.allSatisfy { MHD_add_response_header(response, $0.name, $0.value) == .YES }
  }
}
