// ThumborSteps: what single filters ask for.

import Core
import Glibc

extension ThumborDraft {
  /// Sets a parameter to the nearest number that it may have.
  mutating func set(_ name: String, _ number: Double, within range: ClosedRange<Double>) {
    translation[name] = Argument.written(min(max(number, range.lowerBound), range.upperBound))
  }

  /// Blurs. thumbor's Gaussian ends at its radius, so it has a smaller standard deviation.
  mutating func blur(sigma: Double, radius: Int? = nil) {
    var deviation = sigma
    if let radius {
      guard sigma > 0, radius > 0 else { return }
      var (sum, total) = (0.0, 1.0)
      for place in (1...radius).map(Double.init) {
        let weight = 2 * exp(-place * place / (2 * sigma * sigma))
        sum += weight * place * place
        total += weight
      }
      deviation = (sum / total).squareRoot()
    }
    // What is lower is invisible.
    guard deviation >= Effects.blurRange.lowerBound else { return }
    set("blur", deviation, within: Effects.blurRange)
  }

  /// Turns the result clockwise.
  mutating func rotate(quarters: Int) throws(OptionFault) {
    guard translation["watermark"] == nil else { throw .unsupported("comes after a watermark") }
    turn.add(quarters: quarters)
  }

  /// Makes the result brighter by an amount of −100 to 100. The square keeps the mean of usual
  /// images near that of thumbor, which adds 255/100 of the amount to each value.
  mutating func brighten(by amount: Double) {
    let share = 1 + min(max(amount, -100), 100) / 100
    set("brightness", share * share, within: 0...4)
  }

  /// Rounds the corners: a radius across, and perhaps another one down.
  mutating func round(_ radii: [String], colour: String?) throws(OptionFault) {
    let radius = try ThumborFilters.whole(radii, 0, 0...Int.max)
    guard radius > 0 else { return }
    translation["radius"] = "\(min(radius, CornerRadius.pointRange.upperBound))"
    if let colour { translation["background"] = colour }
  }

  /// Pads the image up to the box.
  mutating func fill(_ arguments: [String]) throws(OptionFault) {
    let name = arguments.first ?? ""
    let colour = try ThumborFilters.colour(name)
    guard proportion == 1 else { throw .unsupported("comes after proportion") }
    (fill, isTurnedBeforeFill) = (colour, turn.swapsSides)
    if name == "auto" || name == "blur" {
      note("fill(\(name))", .near(ThumborFilters.fillsWhite))
    }
    fillsBehind =
      colour.hasSuffix("ff")
      && (dialect == .imagor || arguments.count > 1 && ["1", "true"].contains(arguments[1]))
  }

  /// Sets the format. Formats that the peer does not know are ignored, as there.
  mutating func format(_ arguments: [String]) throws(OptionFault) {
    let name = (arguments.first ?? "").lowercased()
    switch name {
    case "webp", "jpeg", "gif", "png", "avif": translation["format"] = name
    case "jpg", "tiff", "jxl":
      guard dialect == .imagor else { throw OptionFault("webp, jpeg, gif, png or avif") }
      translation["format"] = name == "jpg" ? "jpeg" : name
    case "jp2", "heif":
      guard dialect == .imagor else { throw OptionFault("webp, jpeg, gif, png or avif") }
      throw .unsupported("\(name) is not written")
    default: throw OptionFault("a format")
    }
  }

  /// Adds a focal point: `AxB:CxD`, which weighs as much as its area, or imagor's `X,Y` and `XxY`.
  mutating func focus(on arguments: [String]) throws(OptionFault) {
    let text: String
    switch arguments.count {
    case 1 where arguments[0].contains(":"): text = arguments[0]
    case 1 where dialect == .imagor: text = arguments[0] + ":" + arguments[0]
    case 2 where dialect == .imagor:
      let point = arguments.joined(separator: "x")
      text = point + ":" + point
    default: throw OptionFault("AxB:CxD")
    }
    let numbers = try ThumborParts.corners(text, isDecimal: dialect == .imagor)
    let isShare = text.contains(".") && numbers.allSatisfy { $0 <= 1 }
    let area = (numbers[2] - numbers[0]) * (numbers[3] - numbers[1])
    let weight = area > 0 ? area : isShare ? 1e-6 : 1
    var (sum, total) = focus ?? (Point(x: 0, y: 0, isShare: isShare), 0)
    guard sum.isShare == isShare else { throw .unsupported("both in pixels and in shares") }
    sum.x += weight * (numbers[0] + numbers[2]) / 2
    sum.y += weight * (numbers[1] + numbers[3]) / 2
    total += weight
    focus = (sum, total)
  }

  /// Puts an image on top: `url, x, y, alpha, wr, hr`.
  mutating func watermark(_ arguments: [String]) throws(OptionFault) {
    guard (dialect == .imagor ? 1 : 4)...6 ~= arguments.count, !arguments[0].isEmpty else {
      throw OptionFault("an image, x, y and alpha")
    }
    let x = try place(arguments.count > 1 ? arguments[1] : "0", words: ["left", "center", "right"])
    let y = try place(arguments.count > 2 ? arguments[2] : "0", words: ["top", "center", "bottom"])
    let alpha = arguments.count > 3 ? try ThumborFilters.whole(arguments, 3, 0...100) : 0
    let width = try ratio(arguments.count > 4 ? arguments[4] : "none")
    let height = try ratio(arguments.count > 5 ? arguments[5] : "none")
    guard translation["watermark"] == nil else { throw .unsupported("there is another one") }
    guard (x == nil) == (y == nil) else { throw .unsupported("repeats along one axis") }
    guard width != nil || height == nil else { throw .unsupported("its height is a share") }
    // It is fully transparent.
    guard alpha < 100 else { return }
    do { translation["watermark"] = try sources.url(of: arguments[0]) } catch {
      throw .unsupported(error.reason)
    }
    if let x, let y {
      translation["watermark_position"] = Self.name((x.side, y.side))
      if x.offset != "0" || y.offset != "0" {
        translation["watermark_offset"] = x.offset + "," + y.offset
      }
    } else {
      translation["watermark_repeat"] = "1"
    }
    if alpha > 0 { set("watermark_opacity", 1 - Double(alpha) / 100, within: 0...1) }
    if let width { set("watermark_scale", width / 100, within: 0.0001...1) }
  }

  /// Reads a place on an axis: the side, and the distance from it inward; `nil`: it repeats.
  private func place(
    _ text: String, words: [String]
  ) throws(OptionFault) -> (side: Int, offset: String)? {
    if text == "repeat" { return nil }
    if text == "center" { return (1, "0") }
    if dialect == .imagor, let side = words.firstIndex(of: text) { return (side, "0") }
    let isShare = text.hasSuffix("p")
    guard
      let number = ThumborNumber.whole(
        isShare ? text.dropLast() : text[...], in: -100_000...100_000)
    else { throw OptionFault("a place") }
    let side = text.hasPrefix("-") ? 2 : 0
    let distance = number.magnitude
    return (side, isShare ? Argument.share(Double(distance) / 100) : "\(distance)")
  }

  /// Reads a share in percent; `nil` for `none` and 0.
  private func ratio(_ text: String) throws(OptionFault) -> Double? {
    if text == "none" || text.isEmpty && dialect == .imagor { return nil }
    guard let number = ThumborNumber.decimal(text, in: 0...100_000) else {
      throw OptionFault("a ratio is a number or none")
    }
    return number > 0 ? number : nil
  }
}
