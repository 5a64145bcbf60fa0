// ClientHints: what a request's hint fields say, as plain parameters.

import Glibc
import Model

/// The parameters that a client's hints stand for, rounded to steps.
struct ClientHints: Hashable, Sendable {
  /// `scale`; `nil` without a usable hint.
  var scale: Double?
  /// `w`, in points; `nil` without a usable hint.
  var width: Int?
  /// Whether the client asks for fewer bytes.
  var savesData = false

  /// The value of `Accept-CH` (RFC 8942, section 3.1).
  static let accepted = "Sec-CH-DPR, Sec-CH-Width, Save-Data"

  /// Whether the request is the same as without hints.
  var isEmpty: Bool { scale == nil && width == nil && !savesData }
}

/// How a target follows hints.
struct HintUse: Sendable {
  /// The hints that count.
  let needs: HintNeeds
  /// The target's own `scale`.
  private let scale: Double?
  private let steps: HintSteps

  /// Returns `nil` for a target that follows no hints.
  init?(_ needs: HintNeeds, of request: ImageRequest, rules: RequestRules) {
    guard !needs.isEmpty else { return nil }
    self.needs = needs
    scale = request.transform.sizing.scale
    steps = rules.hintSteps
  }

  /// Reads the hints of the current request. Does not allocate.
  func hints(on connection: OpaquePointer) -> ClientHints {
    hints { RequestHandler.field($0, on: connection) }
  }

  /// Reads the hints of a request whose fields `field` looks up. A field that is absent or
  /// malformed counts as if its parameter were absent.
  func hints(_ field: (StaticString) -> UnsafePointer<CChar>?) -> ClientHints {
    var hints = ClientHints()
    if needs.density {
      let density =
        field("Sec-CH-DPR").flatMap(Self.decimal) ?? field("DPR").flatMap(Self.decimal)
      if let density { hints.scale = HintSteps.density(density) }
    }
    if needs.width,
      let pixels = field("Sec-CH-Width").flatMap(Self.whole) ?? field("Width").flatMap(Self.whole)
    {
      hints.width = steps.width(of: pixels, at: hints.scale ?? scale ?? 1)
    }
    if needs.savesData, let text = field("Save-Data") { hints.savesData = Self.isOn(text) }
    return hints
  }

  /// Parses digits with an optional fraction (RFC 9651, section 3.3.2, without a sign). Returns
  /// `nil` for 0 and for more than nine digits before the point. Of a fraction, digits beyond the
  /// ninth are ignored: browsers write up to sixteen.
  private static func decimal(_ text: UnsafePointer<CChar>) -> Double? {
    var position = text
    guard let whole = number(at: &position) else { return nil }
    var value = Double(whole)
    if position.pointee == 0x2e {
      position += 1
      var unit = 0.1
      var digits = 0
      while let digit = digit(position.pointee) {
        if digits < 9 { value += Double(digit) * unit }
        unit /= 10
        digits += 1
        position += 1
      }
      guard digits > 0 else { return nil }
    }
    return position.pointee == 0 && value > 0 ? value : nil
  }

  /// Parses digits. Returns `nil` for 0 and for more than nine digits.
  private static func whole(_ text: UnsafePointer<CChar>) -> Int? {
    var position = text
    guard let value = number(at: &position), position.pointee == 0, value > 0 else { return nil }
    return value
  }

  /// Reads one to nine digits, and moves `position` behind them.
  private static func number(at position: inout UnsafePointer<CChar>) -> Int? {
    var value = 0
    var digits = 0
    while let digit = digit(position.pointee) {
      guard digits < 9 else { return nil }
      value = value * 10 + digit
      digits += 1
      position += 1
    }
    return digits > 0 ? value : nil
  }

  private static func digit(_ byte: CChar) -> Int? {
    (0x30...0x39).contains(byte) ? Int(byte) - 0x30 : nil
  }

  /// Whether the first token is `on` (WICG Save-Data, section 2).
  private static func isOn(_ text: UnsafePointer<CChar>) -> Bool {
    guard strncasecmp(text, "on", 2) == 0 else { return false }
    return [0, 0x20, 0x09, 0x3b, 0x2c].contains(text[2])
  }
}
