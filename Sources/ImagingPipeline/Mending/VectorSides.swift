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
      var names: Set<String> = []
      tag.forEachAttribute { name, isPrefixed, _ in if !isPrefixed { names.insert(name) } }
      let given = names.intersection(["width", "height"])
      // A name with a prefix is left as it is.
      guard source[scanner.range].starts(with: "<svg".utf8), tag.name == "svg", given.count == 1,
        !names.contains("viewBox"), !names.contains("style")
      else { return nil }
      let start = scanner.range.lowerBound + "<svg".utf8.count
      let added =
        given.contains("width") ? " height=\"\(usual.height)\"" : " width=\"\(usual.width)\""
      return Array(source[..<start]) + added.utf8 + source[start...]
    }
    return nil
  }
}
