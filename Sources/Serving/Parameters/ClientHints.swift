// ClientHints: what a request's hint fields say, as plain parameters, rounded to steps.

import Core
import Glibc

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

/// The hints that a target follows. Depends on the target and the configuration alone.
///
/// Not an `OptionSet`: each hit compares it, and unspecialized standard library code allocates.
struct HintNeeds: Hashable, Sendable {
  /// Whether `scale` is `auto`.
  var density = false
  /// Whether `w` is `auto`.
  var width = false
  /// Whether `Save-Data` lowers the quality.
  var savesData = false

  /// Whether no hint counts.
  var isEmpty: Bool { !density && !width && !savesData }

  /// Whether a parameter is `auto`.
  var hasAuto: Bool { density || width }

  /// A number from 0 to 7, different for each value.
  var number: UInt8 { (density ? 1 : 0) | (width ? 2 : 0) | (savesData ? 4 : 0) }

  /// The names of the fields, for `Vary`. The old name counts where the new one is absent, so both
  /// matter.
  var fields: [String] {
    (density ? ["Sec-CH-DPR", "DPR"] : []) + (width ? ["Sec-CH-Width", "Width"] : [])
      + (savesData ? ["Save-Data"] : [])
  }
}

extension RequestRules {
  /// Whether `Save-Data` lowers the quality of a transform: its result may be lossy, and the
  /// request neither names a quality nor a number of bytes.
  func lowersQuality(of transform: Transform) -> Bool {
    let output = transform.output
    let isLossy = output.format.map { output.qualities[$0] != nil } ?? true
    return savingQualities != nil && transform.product == .image && isLossy
      && output.quality == nil && output.maxBytes == nil && output.qualities == qualities
  }

  /// Returns the request for a client with these hints. Call before `forwarding`.
  func request(_ request: ImageRequest, for hints: ClientHints) -> ImageRequest {
    guard !hints.isEmpty else { return request }
    return request.changing {
      if let scale = hints.scale { $0.sizing.scale = scale }
      if let width = hints.width { $0.sizing.width = width }
      if hints.savesData, let savingQualities { $0.output.qualities = savingQualities }
    }
  }
}

/// Rounds hints up to steps. A client chooses its hints freely, also for a signed URL, so the steps
/// bound how many different results one URL has.
struct HintSteps: Sendable {
  /// `server.size_steps`, in points; if empty, `widths` counts.
  private let points: SizeSteps
  /// Widths in pixels, each at most a half larger than the one before, from 64 on a third.
  private static let widths = [
    32, 48, 64, 80, 96, 128, 160, 192, 256, 320, 384, 512, 640, 768, 1_024, 1_280, 1_536, 1_920,
    2_560, 3_072, 3_840,
  ]
  /// Densities. Page zoom makes others, such as 1.1 and 2.625.
  private static let densities = [1, 1.5, 2, 3, 4]

  /// - Parameter points: the configured steps of `w`; without steps, the built-in ones count.
  init(_ points: SizeSteps) { self.points = points }

  /// Returns the smallest density that is at least as large, or the largest. A hundredth more
  /// counts as equal.
  static func density(_ hint: Double) -> Double {
    densities.first { $0 >= hint - 0.01 } ?? 4
  }

  /// Returns the width of a box in points.
  ///
  /// - Parameters:
  ///   - pixels: the width in physical pixels, at least 1.
  ///   - density: pixels per point, above 0.
  func width(of pixels: Int, at density: Double) -> Int {
    guard points.isEmpty else {
      let exact = Self.points(pixels, at: density)
      return points.rounded(width: exact, height: nil).width ?? exact
    }
    let step = Self.widths.first { $0 >= pixels } ?? 3_840
    return Self.points(step, at: density)
  }

  /// Returns the least points that have these pixels, in the range of `w`. A rounding error of the
  /// division adds no point.
  private static func points(_ pixels: Int, at density: Double) -> Int {
    let range = Sizing.sideRange
    let exact = (Double(pixels) / density - 1e-6).rounded(.up)
    return exact >= Double(range.upperBound)
      ? range.upperBound : max(Int(exact), range.lowerBound)
  }
}

/// The steps of `w` and `h` in points. Fewer sizes are fewer variants to render and to store.
struct SizeSteps: Sendable {
  /// In ascending order.
  private let steps: [Int]

  /// - Parameter steps: points, at least 1, in ascending order; empty: sizes stay as they are.
  init(_ steps: [Int]) { self.steps = steps }

  /// Whether sizes stay as they are.
  var isEmpty: Bool { steps.isEmpty }

  /// Returns a box in points whose longer side is the smallest step that is at least as long, or
  /// the last step. The other side keeps the aspect ratio, which `fit` may show: rounded, at least
  /// 1.
  func rounded(width: Int?, height: Int?) -> (width: Int?, height: Int?) {
    let longer = max(width ?? 0, height ?? 0)
    guard longer > 0, let step = steps.first(where: { $0 >= longer }) ?? steps.last else {
      return (width, height)
    }
    func scaled(_ side: Int) -> Int { max(1, (side * step + longer / 2) / longer) }
    return (width.map(scaled), height.map(scaled))
  }
}
