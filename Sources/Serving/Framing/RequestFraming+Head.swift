// RequestFraming+Head: parses the request line and the header fields.

import Core

extension RequestFraming {
  /// Parses the request line from `first`. Returns the index after the parsed bytes.
  mutating func stepLine(
    _ bytes: UnsafeRawBufferPointer, from first: Int
  ) throws(ImageError) -> Int {
    var index = first
    switch state {
    case .start:
      // Empty lines before a request are ignored (RFC 9112, section 2.2).
      if bytes[index] == Byte.carriageReturn {
        state = .startLineFeed
        return index + 1
      }
      state = .method
      methodIsOptions = true
    case .startLineFeed:
      try expectLineFeed(bytes[index])
      state = .start
      return index + 1
    case .method:
      while index < bytes.count, Byte.isToken(bytes[index]) {
        let options = FieldNames.options
        methodIsOptions =
          methodIsOptions && position < options.utf8CodeUnitCount
          && options.utf8Start[position] == bytes[index]
        position += 1
        index += 1
      }
      guard position <= Self.longestMethod else {
        throw .malformedRequest("the method is too long")
      }
      try pay(index - first)
      guard index < bytes.count else { return index }
      guard bytes[index] == Byte.space, position > 0 else {
        throw .malformedRequest("a request begins with a method, a space and a target")
      }
      methodIsOptions = methodIsOptions && position == FieldNames.options.utf8CodeUnitCount
      state = .target
      position = 0
      return index + 1
    case .target: return try stepTarget(bytes, from: first)
    case .version: return try stepVersion(bytes, from: first)
    default:
      try expectLineFeed(bytes[index])
      state = .fieldStart
      return index + 1
    }
    return index
  }

  private mutating func stepTarget(
    _ bytes: UnsafeRawBufferPointer, from first: Int
  ) throws(ImageError) -> Int {
    var index = first
    if position == 0 {
      switch bytes[index] {
      case UInt8(ascii: "/"), UInt8(ascii: "h"), UInt8(ascii: "H"): break
      case UInt8(ascii: "*") where methodIsOptions: break
      default: throw .malformedRequest("the target is neither a path nor an http URL")
      }
    }
    var items = 0
    while index < bytes.count, bytes[index] > Byte.space, bytes[index] != Byte.delete {
      if bytes[index] == UInt8(ascii: "&") || bytes[index] == UInt8(ascii: "?") { items += 1 }
      index += 1
    }
    position += index - first
    guard position <= Self.longestTarget else { throw .targetTooLong(limit: Self.longestTarget) }
    try pay(index - first + items * Self.itemCost)
    guard index < bytes.count else { return index }
    guard bytes[index] == Byte.space, position > 0 else {
      throw .malformedRequest(
        bytes[index] == Byte.carriageReturn
          ? "HTTP/0.9 is not supported" : "an invalid character in the target")
    }
    state = .version
    position = 0
    return index + 1
  }

  private mutating func stepVersion(
    _ bytes: UnsafeRawBufferPointer, from first: Int
  ) throws(ImageError) -> Int {
    let pattern = FieldNames.version
    for index in first..<bytes.count {
      let byte = bytes[index]
      guard position < pattern.utf8CodeUnitCount else {
        guard byte == Byte.carriageReturn else {
          throw .malformedRequest("an invalid HTTP version")
        }
        guard isHTTP1 else { throw .unsupportedVersion }
        state = .lineFeed
        return index + 1
      }
      let expected = pattern.utf8Start[position]
      if expected == UInt8(ascii: "0") {
        guard byte.isDigit else { throw .malformedRequest("an invalid HTTP version") }
        if position == FieldNames.majorPosition {
          isHTTP1 = byte == UInt8(ascii: "1")
        } else {
          isHTTP11 = byte != UInt8(ascii: "0")
        }
      } else {
        guard byte == expected else { throw .malformedRequest("an invalid HTTP version") }
      }
      position += 1
    }
    return bytes.count
  }

  /// Parses the fields from `first`. Returns the index after the parsed bytes.
  mutating func stepField(
    _ bytes: UnsafeRawBufferPointer, from first: Int
  ) throws(ImageError) -> Int {
    var index = first
    switch state {
    case .fieldStart:
      switch bytes[index] {
      case Byte.carriageReturn:
        state = .endLineFeed
        return index + 1
      case Byte.space, Byte.tab: throw .malformedRequest("a folded header line")
      default: break
      }
      try pay(Self.itemCost)
      state = .name
      position = 0
      candidates = .all
    case .name:
      while index < bytes.count, Byte.isToken(bytes[index]) {
        if !candidates.isEmpty { candidates.narrow(by: bytes[index], at: position) }
        position += 1
        index += 1
      }
      try pay(index - first)
      guard index < bytes.count else { return index }
      guard bytes[index] == UInt8(ascii: ":"), position > 0 else {
        throw .malformedRequest("an invalid character in a header name")
      }
      try beginValue(of: candidates.field(length: position))
      return index + 1
    case .valueStart:
      while index < bytes.count, bytes[index] == Byte.space || bytes[index] == Byte.tab {
        index += 1
      }
      try pay(index - first)
      if index < bytes.count { state = .value }
    case .value:
      // What needs no judgement of each byte.
      if field == .other { index = Byte.endOfPlainWords(bytes, from: index) }
      if field == .host, !sawBlankInValue {
        index = Byte.endOfHost(bytes, from: index)
        valueCount += index - first
      }
      while index < bytes.count, Byte.isValue(bytes[index]) {
        if field != .other {
          try judge(bytes[index])
          if field == .cookie, bytes[index] == UInt8(ascii: "\"") { cookieQuotes.append(index) }
        }
        index += 1
      }
      try pay((index - first) * (field == .cookie ? 2 : 1))
      guard index < bytes.count else { return index }
      guard bytes[index] == Byte.carriageReturn else {
        throw .malformedRequest("a control character in a header value")
      }
      try endValue()
      state = .valueLineFeed
      return index + 1
    case .valueLineFeed:
      try expectLineFeed(bytes[index])
      state = .fieldStart
      return index + 1
    default:
      try expectLineFeed(bytes[index])
      try endHead()
      return index + 1
    }
    return index
  }

  private mutating func beginValue(of field: Field) throws(ImageError) {
    self.field = field
    valueCount = 0
    sawBlankInValue = false
    state = .valueStart
    guard field != .other else { return }
    guard field != .cookie else { return try pay(Self.itemCost) }
    guard !isTrailer else { throw .malformedRequest("a framing header in the trailers") }
    switch field {
    case .host:
      hosts += 1
      guard hosts == 1 else { throw .malformedRequest("two Host headers") }
    case .contentLength:
      guard !hasLength else { throw .malformedRequest("two Content-Length headers") }
      hasLength = true
    case .transferEncoding:
      guard !hasCoding else { throw .malformedRequest("two Transfer-Encoding headers") }
      hasCoding = true
    case .cookie, .other: break
    }
  }

  /// Checks a byte of a value that affects framing. It contains no blank. `Host` may end with
  /// blanks (RFC 9110, section 5.5); libmicrohttpd 0.9.75 leaves them in a length.
  private mutating func judge(_ byte: UInt8) throws(ImageError) {
    guard field != .cookie else {
      // Both end a cookie for libmicrohttpd.
      if byte == UInt8(ascii: ";") || byte == UInt8(ascii: ",") { try pay(Self.itemCost) }
      return
    }
    guard byte != Byte.space, byte != Byte.tab else {
      guard field == .host else { throw .malformedRequest("a blank behind a length or a coding") }
      sawBlankInValue = true
      return
    }
    guard !sawBlankInValue else { throw .malformedRequest("a space in a framing header") }
    switch field {
    case .contentLength:
      guard byte.isDigit else { throw .malformedRequest("Content-Length is not a number") }
      // 18 decimal digits cannot overflow `Int`.
      guard valueCount < 18 else { throw .malformedRequest("Content-Length is too long") }
      rest = rest * 10 + Int(byte - UInt8(ascii: "0"))
    case .transferEncoding:
      let coding = FieldNames.chunked
      guard valueCount < coding.utf8CodeUnitCount,
        coding.utf8Start[valueCount] == byte | Byte.caseBit
      else { throw .malformedRequest("a Transfer-Encoding other than chunked") }
    case .host:
      guard Byte.isHost(byte) else { throw .malformedRequest("an invalid character in Host") }
    case .cookie, .other: break
    }
    valueCount += 1
  }

  private func endValue() throws(ImageError) {
    switch field {
    case .contentLength:
      guard valueCount > 0 else { throw .malformedRequest("Content-Length is not a number") }
    case .transferEncoding:
      guard valueCount == FieldNames.chunked.utf8CodeUnitCount else {
        throw .malformedRequest("a Transfer-Encoding other than chunked")
      }
    case .host, .cookie, .other: break
    }
  }

  func expectLineFeed(_ byte: UInt8) throws(ImageError) {
    guard byte == Byte.lineFeed else {
      throw .malformedRequest("a carriage return without a line feed")
    }
  }
}
