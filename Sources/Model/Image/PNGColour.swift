// PNGColour: reads the colour chunks of a PNG.

/// The colour chunks of a PNG, in order of precedence: `cICP`, `iCCP`, `sRGB`, then `gAMA` with
/// `cHRM` (PNG, third edition, 4.3 and 11.3.2). Browsers convert by them in this order.
public struct PNGColour: Hashable, Sendable {
  /// CIE 1931 x and y of white, red, green and blue, times 100,000.
  public struct Chromaticities: Hashable, Sendable {
    /// x and y of white, red, green and blue.
    public let numbers: [Int]

    /// The chromaticities of sRGB (PNG, table 15).
    public static let sRGB = Chromaticities([
      31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000,
    ])

    init(_ numbers: [Int]) { self.numbers = numbers }

    /// Returns whether the values differ only by rounding.
    fileprivate func isClose(to other: Chromaticities) -> Bool {
      zip(numbers, other.numbers).allSatisfy { abs($0 - $1) <= 100 }
    }
  }

  /// The encoding gamma times 100,000; `nil` if no chunk states it.
  public private(set) var gamma: Int?
  /// The chromaticities; `nil` if no chunk states them.
  public private(set) var chromaticities: Chromaticities?
  /// Whether the PNG has an ICC profile, which takes precedence.
  public private(set) var hasProfile = false
  /// The code points of `cICP` (ITU-T H.273), which take precedence over all else; `nil` without
  /// them.
  public private(set) var codePoints: CodePoints?
  private var isNamed = false

  /// Colour primaries and transfer characteristics by their numbers.
  public struct CodePoints: Hashable, Sendable {
    /// `ColourPrimaries`.
    public let primaries: Int
    /// `TransferCharacteristics`.
    public let transfer: Int
  }

  /// The `gAMA` value of sRGB (PNG, table 15).
  public static let gammaOfSRGB = 45_455

  /// Creates a value without colour information.
  public init() {}

  /// Records a chunk. Ignores other chunks and those with a wrong length.
  public mutating func take(_ kind: String, content: some Collection<UInt8>) {
    switch (kind, content.count) {
    case ("iCCP", _): hasProfile = true
    case ("cICP", 4):
      let numbers = content.map { Int($0) }
      // Other matrices are not allowed (11.3.2.6), and samples in a narrow range are for
      // television.
      if numbers[2] == 0, numbers[3] == 1 {
        codePoints = CodePoints(primaries: numbers[0], transfer: numbers[1])
      }
    case ("sRGB", 1): isNamed = true
    case ("gAMA", 4):
      let value = Self.number(content)
      // Ignores values outside libpng's limits, 0 included.
      if (16...625_000_000).contains(value) { gamma = value }
    case ("cHRM", 32):
      chromaticities = Chromaticities(
        (0..<8).map { index in Self.number(content.dropFirst(index * 4).prefix(4)) })
    default: break
    }
  }

  /// Whether `gAMA` or `cHRM` differ from sRGB, and nothing takes precedence.
  public var isForeign: Bool {
    guard codePoints == nil, !hasProfile, !isNamed else { return false }
    // A difference of half a percent changes no 8-bit value.
    let hasForeignGamma = gamma.map { abs($0 - Self.gammaOfSRGB) > 227 } ?? false
    return hasForeignGamma || chromaticities.map { !$0.isClose(to: .sRGB) } ?? false
  }

  /// Reads the chunks of a PNG up to its palette or pixel data.
  public init(of file: UnsafeRawBufferPointer) {
    // Skips the signature.
    var place = 8
    while place <= file.count - 12 {
      let length = Self.number(file[place..<place + 4])
      let kind = String(decoding: file[place + 4..<place + 8], as: UTF8.self)
      guard kind != "IDAT", kind != "PLTE", length <= file.count - place - 12 else { return }
      take(kind, content: file[place + 8..<place + 8 + length])
      place += 12 + length
    }
  }

  private static func number(_ bytes: some Collection<UInt8>) -> Int {
    bytes.reduce(0) { $0 << 8 | Int($1) }
  }
}
