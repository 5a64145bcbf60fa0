// Colors: the colours of CSS and of ARGB order, as Pictor's `rrggbb` or `rrggbbaa`.

import Core

/// Readers of colours. All return lower case, and no alpha that is opaque.
enum Colors {
  /// Reads a colour of CSS: a name, `transparent`, `#rgb` to `#rrggbbaa` (the `#` may be missing),
  /// `rgb()`, `rgba()`, `hsl()` and `hsla()` in both syntaxes.
  static func css(_ text: String) -> String? {
    let text = text.lowercased()
    if text == "transparent" { return "00000000" }
    if let color = named[text] { return color }
    if let open = text.firstIndex(of: "("), text.hasSuffix(")") {
      let body = text[text.index(after: open)...].dropLast()
      return function(String(text[..<open]), body)
    }
    return hexadecimal(text) { $0 }
  }

  /// Reads a name, or digits with the alpha first, also after `#`: `rgb`, `argb`, `aarrggbb`.
  static func argb(_ text: String) -> String? {
    let text = text.lowercased()
    return named[text] ?? hexadecimal(text) { String($0.dropFirst(2) + $0.prefix(2)) }
  }

  /// Reads digits; `order` brings eight of them into the order of `rrggbbaa`.
  private static func hexadecimal(_ text: String, order: (String) -> String) -> String? {
    let digits = text.hasPrefix("#") ? text.dropFirst() : text[...]
    guard digits.utf8.allSatisfy({ $0.hexadecimalValue != nil }) else { return nil }
    switch digits.utf8.count {
    case 3, 4: return hexadecimal(digits.map { "\($0)\($0)" }.joined(), order: order)
    case 6: return String(digits)
    case 8: return opaque(order(String(digits)))
    default: return nil
    }
  }

  private static func opaque(_ color: String) -> String {
    color.hasSuffix("ff") ? String(color.dropLast(2)) : color
  }

  /// Reads the arguments of `rgb()` or `hsl()`, which commas, blanks or a slash separate.
  private static func function(_ name: String, _ body: Substring) -> String? {
    let parts = body.split { ", /".contains($0) }.map { String($0) }
    guard (3...4).contains(parts.count),
      let alpha = parts.count == 4 ? channel(parts[3], percent: 1) : 1
    else { return nil }
    var channels: [Double]
    switch name {
    case "rgb", "rgba":
      channels = parts.prefix(3).compactMap { channel($0, percent: 255).map { $0 / 255 } }
    case "hsl", "hsla":
      let hue = parts[0].hasSuffix("deg") ? String(parts[0].dropLast(3)) : parts[0]
      guard let degrees = try? hue.number(in: -36_000...36_000),
        parts[1].hasSuffix("%"), parts[2].hasSuffix("%"),
        let saturation = channel(parts[1], percent: 1), let light = channel(parts[2], percent: 1)
      else { return nil }
      let swing = saturation.clamped(to: 0...1) * min(light, 1 - light)
      channels = [0, 8, 4].map { (offset: Double) in
        let k = (offset + degrees / 30 + 1_200).truncatingRemainder(dividingBy: 12)
        return light - swing * max(-1, min(k - 3, 9 - k, 1))
      }
    default: return nil
    }
    guard channels.count == 3 else { return nil }
    let digits = (channels + [alpha]).map { share in
      Int((share.clamped(to: 0...1) * 255).rounded()).hexadecimal(2)
    }
    return opaque(digits.joined())
  }

  /// Reads a number, or a percentage of `percent`.
  private static func channel(_ text: String, percent: Double) -> Double? {
    guard text.hasSuffix("%") else { return try? text.number(in: -1_000...1_000) }
    return (try? text.dropLast().number(in: -1_000...1_000)).map { $0 * percent / 100 }
  }

  /// The 148 names of CSS Color 4, section 6.1.
  static let named: [String: String] = {
    let words = names.split { $0.isWhitespace }.map { String($0) }
    let pairs = stride(from: 0, to: words.count, by: 2).map { (words[$0], words[$0 + 1]) }
    return Dictionary(uniqueKeysWithValues: pairs)
  }()

  private static let names = """
    aliceblue f0f8ff antiquewhite faebd7 aqua 00ffff aquamarine 7fffd4 azure f0ffff beige f5f5dc
    bisque ffe4c4 black 000000 blanchedalmond ffebcd blue 0000ff blueviolet 8a2be2 brown a52a2a
    burlywood deb887 cadetblue 5f9ea0 chartreuse 7fff00 chocolate d2691e coral ff7f50
    cornflowerblue 6495ed cornsilk fff8dc crimson dc143c cyan 00ffff darkblue 00008b darkcyan 008b8b
    darkgoldenrod b8860b darkgray a9a9a9 darkgreen 006400 darkgrey a9a9a9 darkkhaki bdb76b
    darkmagenta 8b008b darkolivegreen 556b2f darkorange ff8c00 darkorchid 9932cc darkred 8b0000
    darksalmon e9967a darkseagreen 8fbc8f darkslateblue 483d8b darkslategray 2f4f4f
    darkslategrey 2f4f4f darkturquoise 00ced1 darkviolet 9400d3 deeppink ff1493 deepskyblue 00bfff
    dimgray 696969 dimgrey 696969 dodgerblue 1e90ff firebrick b22222 floralwhite fffaf0
    forestgreen 228b22 fuchsia ff00ff gainsboro dcdcdc ghostwhite f8f8ff gold ffd700
    goldenrod daa520 gray 808080 green 008000 greenyellow adff2f grey 808080 honeydew f0fff0
    hotpink ff69b4 indianred cd5c5c indigo 4b0082 ivory fffff0 khaki f0e68c lavender e6e6fa
    lavenderblush fff0f5 lawngreen 7cfc00 lemonchiffon fffacd lightblue add8e6 lightcoral f08080
    lightcyan e0ffff lightgoldenrodyellow fafad2 lightgray d3d3d3 lightgreen 90ee90 lightgrey d3d3d3
    lightpink ffb6c1 lightsalmon ffa07a lightseagreen 20b2aa lightskyblue 87cefa
    lightslategray 778899 lightslategrey 778899 lightsteelblue b0c4de lightyellow ffffe0 lime 00ff00
    limegreen 32cd32 linen faf0e6 magenta ff00ff maroon 800000 mediumaquamarine 66cdaa
    mediumblue 0000cd mediumorchid ba55d3 mediumpurple 9370db mediumseagreen 3cb371
    mediumslateblue 7b68ee mediumspringgreen 00fa9a mediumturquoise 48d1cc mediumvioletred c71585
    midnightblue 191970 mintcream f5fffa mistyrose ffe4e1 moccasin ffe4b5 navajowhite ffdead
    navy 000080 oldlace fdf5e6 olive 808000 olivedrab 6b8e23 orange ffa500 orangered ff4500
    orchid da70d6 palegoldenrod eee8aa palegreen 98fb98 paleturquoise afeeee palevioletred db7093
    papayawhip ffefd5 peachpuff ffdab9 peru cd853f pink ffc0cb plum dda0dd powderblue b0e0e6
    purple 800080 rebeccapurple 663399 red ff0000 rosybrown bc8f8f royalblue 4169e1
    saddlebrown 8b4513 salmon fa8072 sandybrown f4a460 seagreen 2e8b57 seashell fff5ee sienna a0522d
    silver c0c0c0 skyblue 87ceeb slateblue 6a5acd slategray 708090 slategrey 708090 snow fffafa
    springgreen 00ff7f steelblue 4682b4 tan d2b48c teal 008080 thistle d8bfd8 tomato ff6347
    turquoise 40e0d0 violet ee82ee wheat f5deb3 white ffffff whitesmoke f5f5f5 yellow ffff00
    yellowgreen 9acd32
    """
}
