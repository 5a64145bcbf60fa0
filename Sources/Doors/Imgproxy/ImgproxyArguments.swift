// ImgproxyArguments: reads the arguments of imgproxy's options.

import Core

/// The arguments of an option. An empty one is as if it were absent.
struct ImgproxyArguments {
  let texts: [String]

  /// How many there are, empty ones included.
  var count: Int { texts.count }

  /// Returns an argument; `nil` if it is absent.
  func text(_ index: Int) -> String? {
    index < texts.count && !texts[index].isEmpty ? texts[index] : nil
  }

  /// Reads `1`, `t` or `true`. Everything else is false, as at the peer.
  func flag(_ index: Int) -> Bool? {
    text(index).map { ["1", "t", "T", "true", "TRUE", "True"].contains($0) }
  }

  /// Reads a whole number.
  func whole(_ index: Int, _ range: ClosedRange<Int>) throws(OptionFault) -> Int? {
    guard let text = text(index) else { return nil }
    guard (text.hasPrefix("-") ? text.dropFirst() : text[...]).isDigits, let value = Int(text),
      range.contains(value)
    else { throw OptionFault("'\(text.prefix(32))' is not " + AllowedValues.text(range)) }
    return value
  }

  /// Reads a decimal number.
  func number(_ index: Int, _ range: ClosedRange<Double>) throws(OptionFault) -> Double? {
    guard let text = text(index) else { return nil }
    guard text.utf8.count <= 20, text.utf8.allSatisfy({ $0.isDigit || "-.".utf8.contains($0) }),
      let value = Double(text), range.contains(value)
    else {
      throw OptionFault(
        "'\(text.prefix(32))' is not a number from \(range.lowerBound) to \(range.upperBound)")
    }
    return value
  }

  /// Reads a number above 0.
  func factor(_ index: Int) throws(OptionFault) -> Double? {
    let value = try number(index, 0...1_000_000)
    guard value != 0 else { throw OptionFault("0 is not above 0") }
    return value
  }

  /// Reads a colour as `rgb` or `rrggbb`, and returns the latter.
  func color(_ index: Int) throws(OptionFault) -> String? {
    guard let text = text(index) else { return nil }
    guard text.utf8.count != 8, let color = Color(hexadecimal: text) else {
      throw OptionFault("'\(text.prefix(32))' is no colour rgb or rrggbb in hexadecimal")
    }
    return String(color.hexadecimal.dropLast(2))
  }

  /// Reads the name of a format.
  func format(_ index: Int) throws(OptionFault) -> ImgproxyFormat {
    guard let format = text(index).flatMap(ImgproxyFormat.init) else {
      throw OptionFault("'\(text(index)?.prefix(32) ?? "")' is no format")
    }
    return format
  }

  /// Reads where to cut or to extend, from an index on; `nil` if it is absent.
  func gravity(_ index: Int, maySearch: Bool) throws(OptionFault) -> ImgproxyGravity? {
    guard index < count else { return nil }
    var gravity = ImgproxyGravity()
    let name = text(index) ?? "ce"
    guard !name.hasPrefix("obj") else {
      throw OptionFault("imgproxy Pro: no objects are detected")
    }
    gravity.position = name == "sm" ? .attention : ImgproxyGravity.positions[name]
    gravity.isFocal = name == "fp"
    let isKnown = gravity.isFocal || gravity.position.map { $0 != .attention || maySearch } ?? false
    guard isKnown, count <= index + (gravity.isSearch ? 1 : 3),
      !gravity.isFocal || count == index + 3
    else {
      throw OptionFault("'\(name.prefix(32))' is no gravity with its offsets")
    }
    let range = gravity.isFocal ? 0...1 : ImgproxyGravity.offsets
    gravity.x = try number(index + 1, range) ?? 0
    gravity.y = try number(index + 2, range) ?? 0
    return gravity
  }
}

/// Where imgproxy cuts or extends: at a side, in a corner or the centre, around a focal point, or
/// where libvips finds something.
struct ImgproxyGravity: Hashable, Sendable {
  /// The place; `attention` for a search.
  var position: Position? = .center
  /// Whether the offsets are a focal point.
  var isFocal = false
  /// The offset inward from the place, in pixels from 1 on, below as a share.
  var x = 0.0
  /// Likewise.
  var y = 0.0

  /// The range of offsets.
  static let offsets = -65_535.0...65_535.0
  /// The places by their names.
  static let positions: [String: Position] = [
    "no": .top, "so": .bottom, "ea": .right, "we": .left, "noea": .rightTop, "nowe": .leftTop,
    "soea": .rightBottom, "sowe": .leftBottom, "ce": .center,
  ]

  /// Whether the place depends on the image.
  var isSearch: Bool { position == .attention }
  /// The value of `position`.
  var place: String { position?.rawValue ?? Argument.written(x) + "," + Argument.written(y) }

  /// Returns the value of `offset`, its pixels divided by a factor; `nil` without offsets.
  func offset(dividedBy divisor: Double = 1) -> String? {
    guard !isFocal, x != 0 || y != 0 else { return nil }
    return lengthText(x, times: 1 / divisor) + "," + lengthText(y, times: 1 / divisor)
  }
}

/// Returns a length as Pictor has it: from 1 on whole pixels, times a factor; below a share, which
/// has a point.
func lengthText(_ length: Double, times factor: Double = 1) -> String {
  guard length != 0, abs(length) < 1 else { return "\(wholePixels(length * factor))" }
  let text = Argument.written(length)
  return text.contains(".") ? text : text + ".0"
}

/// Returns a number as whole pixels.
func wholePixels(_ number: Double) -> Int { Int(min(max(number, -65_535), 65_535).rounded()) }
