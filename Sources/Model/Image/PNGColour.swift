// PNGColour: what a PNG's chunks in front of its pixels say about the light that its numbers stand for.

/// The colour chunks of a PNG (PNG, third edition, 11.3.2), from the most to the least important: `iCCP`, `sRGB`, then
/// `gAMA` and `cHRM`. Browsers convert by them in this order.
public struct PNGColour: Hashable, Sendable {
  /// White, red, green and blue as x and y of CIE 1931, in parts of 100,000.
  public struct Chromaticities: Hashable, Sendable {
    /// x and y of white, red, green and blue.
    public let numbers: [Int]

    /// sRGB's (PNG, table 15).
    public static let sRGB = Chromaticities([
      31_270, 32_900, 64_000, 33_000, 30_000, 60_000, 15_000, 6_000,
    ])

    init(_ numbers: [Int]) { self.numbers = numbers }

    /// Whether they are the same but for rounding.
    fileprivate func isClose(to other: Chromaticities) -> Bool {
      zip(numbers, other.numbers).allSatisfy { abs($0 - $1) <= 100 }
    }
  }

  /// The power by which light becomes numbers, in parts of 100,000; `nil` where nothing says it.
  public private(set) var gamma: Int?
  /// `nil` where nothing says them.
  public private(set) var chromaticities: Chromaticities?
  /// Whether there is a profile, which goes before all else.
  public private(set) var hasProfile = false
  private var isNamed = false

  /// sRGB's `gAMA` (PNG, table 15).
  public static let gammaOfSRGB = 45_455

  /// Nothing is said yet.
  public init() {}

  /// Takes note of a chunk. One that says nothing of colours, or has another length than its kind has, changes nothing.
  public mutating func take(_ kind: String, _ content: some Collection<UInt8>) {
    switch (kind, content.count) {
    case ("iCCP", _): hasProfile = true
    case ("sRGB", 1): isNamed = true
    case ("gAMA", 4):
      let value = Self.number(content)
      // 0 and what makes each number full light says nothing (libpng's limits).
      if (16...625_000_000).contains(value) { gamma = value }
    case ("cHRM", 32):
      chromaticities = Chromaticities(
        (0..<8).map { index in Self.number(content.dropFirst(index * 4).prefix(4)) })
    default: break
    }
  }

  /// Whether numbers mean something else than sRGB's, by `gAMA` and `cHRM`, where neither a profile nor `sRGB` goes
  /// before them.
  public var isForeign: Bool {
    guard !hasProfile, !isNamed else { return false }
    // Half a percent of the power is less than one step of 255.
    let hasForeignGamma = gamma.map { abs($0 - Self.gammaOfSRGB) > 227 } ?? false
    return hasForeignGamma || chromaticities.map { !$0.isClose(to: .sRGB) } ?? false
  }

  /// Reads the chunks of a PNG up to its pixels.
  public init(of file: UnsafeRawBufferPointer) {
    // The signature.
    var place = 8
    while place <= file.count - 12 {
      let length = Self.number(file[place..<place + 4])
      let kind = String(decoding: file[place + 4..<place + 8], as: UTF8.self)
      guard kind != "IDAT", kind != "PLTE", length <= file.count - place - 12 else { return }
      take(kind, file[place + 8..<place + 8 + length])
      place += 12 + length
    }
  }

  private static func number(_ bytes: some Collection<UInt8>) -> Int {
    bytes.reduce(0) { $0 << 8 | Int($1) }
  }
}
