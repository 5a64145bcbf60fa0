// VectorSides: the side that the root of an SVG lacks, as browsers complete it.

/// Completes the size of an SVG without a `viewBox`.
enum VectorSides {
  /// The size of a replaced element without one of its own (CSS Images 3, section 5.3).
  private static let usual = (width: "300", height: "150")

  /// Returns the document with both sides; `nil` unless exactly one is given, without a `viewBox`.
  static func completed(_ source: UnsafeRawBufferPointer) -> [UInt8]? {
    var scanner = VectorScanner(source)
    while let part = scanner.next() {
      guard case .open(let tag) = part else { continue }
      guard tag.name == "svg" else { return nil }
      var names: Set<String> = []
      tag.forEachAttribute { name, isPrefixed, _ in if !isPrefixed { names.insert(name) } }
      let given = names.intersection(["width", "height"])
      guard given.count == 1, !names.contains("viewBox"), !names.contains("style"),
        let start = place(of: "<svg", in: source)
      else { return nil }
      let added =
        given.contains("width") ? " height=\"\(usual.height)\"" : " width=\"\(usual.width)\""
      return Array(source[..<start]) + added.utf8 + source[start...]
    }
    return nil
  }

  /// Returns the offset behind the root's name. Comments and the document type before it may have the same text.
  private static func place(of text: String, in source: UnsafeRawBufferPointer) -> Int? {
    var place = 0
    while place < source.count {
      let rest = source[place...]
      if rest.starts(with: text.utf8) { return place + text.utf8.count }
      guard source[place] == UInt8(ascii: "<") else {
        place += 1
        continue
      }
      // A document type with a subset is left as it is.
      let end = rest.starts(with: "<!--".utf8) ? "-->" : ">"
      guard !rest.starts(with: "<!DOCTYPE".utf8) || !rest.prefix(4_096).contains(UInt8(ascii: "["))
      else { return nil }
      while place < source.count, !source[place...].starts(with: end.utf8) { place += 1 }
    }
    return nil
  }
}
