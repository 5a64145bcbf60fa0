// Profiles: reads ICC profiles, and builds one from a PNG's gamma and primaries.

import Core
import Glibc

/// Reads the tags of a profile (ICC.1:2022, 7.3), which is untrusted input: `desc` (9.2.41;
/// ICC.1:2001-04, 6.4.32) for people, others by name.
enum ProfileDescription {
  /// The maximum code points of a description, enough to tell profiles apart.
  private static let longest = 80

  /// Returns the description without control characters, shortened if necessary; `nil` if there is
  /// no description.
  static func read(_ profile: [UInt8]) -> String? {
    guard let tag = tags(of: profile).first(where: { $0.name == signature("desc") }),
      tag.offset <= profile.count, tag.size <= profile.count - tag.offset
    else { return nil }
    return text(Array(profile[tag.offset..<tag.offset + tag.size])).flatMap(cleaned)
  }

  /// Whether a profile has a tag of this name.
  static func has(_ name: String, in profile: [UInt8]) -> Bool {
    tags(of: profile).contains { $0.name == signature(name) }
  }

  /// Returns the tags. The 128-byte header is followed by a table: a count, then signature, offset
  /// and size of each tag (7.3).
  private static func tags(of profile: [UInt8]) -> [(name: Int, offset: Int, size: Int)] {
    (0..<min(number(profile, at: 128) ?? 0, 100)).compactMap { index in
      let entry = 132 + index * 12
      guard let name = number(profile, at: entry), let offset = number(profile, at: entry + 4),
        let size = number(profile, at: entry + 8)
      else { return nil }
      return (name, offset, size)
    }
  }

  private static func text(_ tag: [UInt8]) -> String? {
    switch number(tag, at: 0) {
    // Version 2: a byte count that includes the NUL, then ASCII.
    case signature("desc"):
      guard let count = number(tag, at: 8) else { return nil }
      return String(decoding: tag.dropFirst(12).prefix(count).prefix { $0 != 0 }, as: UTF8.self)
    // Version 4: the number of languages and the record size. Each record has two codes, and the
    // length and offset of big-endian UTF-16. The first record is the default.
    case signature("mluc"):
      guard let languages = number(tag, at: 8), languages > 0, let length = number(tag, at: 20),
        let offset = number(tag, at: 24), offset <= tag.count, length <= tag.count - offset
      else { return nil }
      let units = stride(from: offset, to: offset + length - length % 2, by: 2).map {
        UInt16(tag[$0]) << 8 | UInt16(tag[$0 + 1])
      }
      return String(decoding: units.prefix { $0 != 0 }, as: UTF16.self)
    default: return nil
    }
  }

  private static func cleaned(_ text: String) -> String? {
    let visible = text.unicodeScalars.filter {
      $0.value >= 0x20 && !(0x7f..<0xa0).contains($0.value)
    }
    let cut = String(String.UnicodeScalarView(visible.prefix(longest)))
    return cut.isEmpty ? nil : cut
  }

  /// Reads a big-endian 32-bit number; `nil` past the end.
  private static func number(_ bytes: [UInt8], at offset: Int) -> Int? {
    bytes.withUnsafeBytes { try? ByteReader($0).number(at: offset, width: 4) }
  }

  private static func signature(_ name: String) -> Int { name.utf8.reduce(0) { $0 << 8 | Int($1) } }
}

/// Writes ICC profiles (ICC.1:2022) of display class, which `Colour` applies like embedded ones.
enum MatrixProfile {
  private typealias Vector = SIMD3<Double>

  /// Returns a profile for the values that `colour` describes.
  ///
  /// The curve is sRGB's without `gAMA`, and the primaries are sRGB's without `cHRM`.
  ///
  /// - Parameter isGrey: Whether the image has only lightness, which primaries do not affect.
  /// - Returns: `nil` if the chromaticities are not a triangle that contains white.
  static func bytes(for colour: PNGColour, isGrey: Bool) -> [UInt8]? {
    let curve = curve(gamma: colour.gamma)
    var tags: [(name: String, content: [UInt8])] = [("wtpt", xyz(d50))]
    if isGrey {
      tags.append(("kTRC", curve))
    } else {
      guard let primaries = primaries(colour.chromaticities ?? .sRGB) else { return nil }
      for (letter, primary) in zip(["r", "g", "b"], primaries) {
        tags.append((letter + "XYZ", xyz(primary)))
      }
      for letter in ["r", "g", "b"] { tags.append((letter + "TRC", curve)) }
    }
    return file(space: isGrey ? "GRAY" : "RGB ", tags)
  }

  // MARK: Colours

  /// The white of the profile connection space (ICC.1:2022, 7.2.16).
  private static let d50 = Vector(0.9642, 1, 0.8249)

  /// The rows of the Bradford transform for adapting whites (ICC.1:2022, annex E).
  private static let bradford = [
    Vector(0.8951, 0.2664, -0.1614), Vector(-0.7502, 1.7135, 0.0367),
    Vector(0.0389, -0.0685, 1.0296),
  ]

  /// Returns red, green and blue in XYZ, adapted to D50; their sum is D50's white.
  private static func primaries(_ chromaticities: PNGColour.Chromaticities) -> [Vector]? {
    let points = (0..<4).map { index -> Vector? in
      let x = Double(chromaticities.numbers[index * 2]) / 100_000
      let y = Double(chromaticities.numbers[index * 2 + 1]) / 100_000
      return y > 0 && x >= 0 && x + y <= 1 ? Vector(x / y, 1, (1 - x - y) / y) : nil
    }
    guard let white = points[0], let red = points[1], let green = points[2], let blue = points[3],
      let shares = solved([red, green, blue], for: white), shares.min() > 0
    else { return nil }
    let cone = applied(bradford, to: white)
    let ratio = applied(bradford, to: d50) / cone
    guard cone.min() > 0, let inverse = inverse(bradford) else { return nil }
    return zip([red, green, blue], [shares.x, shares.y, shares.z]).map { primary, share in
      applied(inverse, to: applied(bradford, to: primary * share) * ratio)
    }
  }

  /// Returns the factors with which the columns add up to `target`.
  private static func solved(_ columns: [Vector], for target: Vector) -> Vector? {
    let rows = (0..<3).map { Vector(columns[0][$0], columns[1][$0], columns[2][$0]) }
    return inverse(rows).map { applied($0, to: target) }
  }

  private static func applied(_ rows: [Vector], to vector: Vector) -> Vector {
    Vector((rows[0] * vector).sum(), (rows[1] * vector).sum(), (rows[2] * vector).sum())
  }

  private static func cross(_ a: Vector, _ b: Vector) -> Vector {
    Vector(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)
  }

  /// Returns the inverse, from the rows' cross products; `nil` if the matrix is singular.
  private static func inverse(_ rows: [Vector]) -> [Vector]? {
    let columns = [cross(rows[1], rows[2]), cross(rows[2], rows[0]), cross(rows[0], rows[1])]
    let determinant = (rows[0] * columns[0]).sum()
    guard abs(determinant) > 1e-9 else { return nil }
    return (0..<3).map { Vector(columns[0][$0], columns[1][$0], columns[2][$0]) / determinant }
  }

  // MARK: File

  /// Returns a `parametricCurveType` (ICC.1:2022, 10.18): a power, or sRGB's curve (IEC 61966-2-1).
  private static func curve(gamma: Int?) -> [UInt8] {
    let (kind, numbers): (Int, [Double]) =
      gamma.map { (0, [100_000 / Double($0)]) }
      ?? (3, [2.4, 1 / 1.055, 0.055 / 1.055, 1 / 12.92, 0.04045])
    return Array("para".utf8) + [UInt8].number(0, 4) + [UInt8].number(kind, 2)
      + [UInt8].number(0, 2)
      + numbers.flatMap(fixed)
  }

  private static func xyz(_ color: Vector) -> [UInt8] {
    Array("XYZ ".utf8) + [UInt8].number(0, 4) + fixed(color.x) + fixed(color.y) + fixed(color.z)
  }

  /// Returns the file: header, tag table, tags.
  private static func file(space: String, _ tags: [(name: String, content: [UInt8])]) -> [UInt8] {
    let start = 128 + 4 + 12 * tags.count
    var table = [UInt8].number(tags.count, 4)
    var contents = [UInt8]()
    for (name, content) in tags {
      table +=
        Array(name.utf8) + [UInt8].number(start + contents.count, 4)
        + [UInt8].number(content.count, 4)
      contents += content
    }
    var header =
      [UInt8].number(start + contents.count, 4) + [UInt8].number(0, 4)
      + [UInt8].number(0x0400_0000, 4)
    header += Array("mntr".utf8) + Array(space.utf8) + Array("XYZ ".utf8) + [UInt8].number(0, 12)
    header +=
      Array("acsp".utf8) + [UInt8].number(0, 28) + fixed(d50.x) + fixed(d50.y) + fixed(d50.z)
    header += [UInt8](repeating: 0, count: 128 - header.count)
    return header + table + contents
  }

  /// Returns an `s15Fixed16Number`, clamped to its range.
  private static func fixed(_ number: Double) -> [UInt8] {
    let value = Int32(clamping: Int((min(max(number, -32_768), 32_767) * 65_536).rounded()))
    return [UInt8].number(Int(UInt32(bitPattern: value)), 4)
  }
}
