// EffectParameters: the parameters that turn and crop an image, and its effects.

import Model

extension ImageParameter {
  /// The parameters of group `part`.
  static let partTable: [ImageParameter] = [
    ImageParameter(
      name: "rotate", allowed: .names(["90", "180", "270"]),
      group: .part, help: "Degrees clockwise, on top of the EXIF orientation"
    ) {
      choose(
        whole($0, in: 90...270).flatMap(Rotation.init(rawValue:)),
        for: &$1.transform.selection.rotation)
    },
    ImageParameter(
      name: "flip", allowed: .names(["h", "v", "hv"]),
      group: .part, help: "Mirror left to right, top to bottom, or both"
    ) {
      choose(
        Flip(rawValue: $0).flatMap { $0 == .none ? nil : $0 }, for: &$1.transform.selection.flip)
    },
    ImageParameter(
      name: "crop",
      allowed: AllowedValues(
        text: "x,y,w,h in whole source pixels, w and h at least 1", unit: "pixels", form: .area),
      group: .part, help: "The part to use: x,y,w,h in pixels of the source as turned"
    ) {
      $1.transform.selection.crop = area($0)
      return $1.transform.selection.crop != nil
    },
    ImageParameter(
      name: "trim", allowed: .whole(Selection.trimRange),
      group: .part, help: "Cut off plain edges; how much a pixel may differ"
    ) {
      $1.transform.selection.trim = whole($0, in: Selection.trimRange)
      return $1.transform.selection.trim != nil
    },
  ]

  /// The parameters of group `effects`.
  static let effectTable: [ImageParameter] = [
    ImageParameter(
      name: "blur", allowed: .decimal(Effects.blurRange, unit: "sigma"),
      group: .effects, help: "Gaussian blur, in pixels of the result"
    ) {
      $1.transform.effects.blur = decimal($0, in: Effects.blurRange)
      return $1.transform.effects.blur != nil
    },
    ImageParameter(
      name: "sharpen", allowed: .decimal(Effects.sharpenRange, unit: "sigma"),
      group: .effects, help: "Unsharp mask on the lightness"
    ) {
      $1.transform.effects.sharpen = decimal($0, in: Effects.sharpenRange)
      return $1.transform.effects.sharpen != nil
    },
    ImageParameter(
      name: "radius",
      allowed: AllowedValues(
        text: "\(text(CornerRadius.pointRange)), or max", names: ["max"],
        numbers: .whole(CornerRadius.pointRange), unit: "points"),
      group: .effects, help: "Round corners: points, or max for a circle"
    ) {
      $1.transform.effects.radius =
        $0 == "max" ? .maximum : whole($0, in: CornerRadius.pointRange).map { .points($0) }
      return $1.transform.effects.radius != nil
    },
    ImageParameter(
      name: "tint", allowed: .color,
      group: .effects, help: "A colour over the image, as strong as its alpha"
    ) {
      $1.transform.effects.tint = Color(hexadecimal: $0)
      return $1.transform.effects.tint != nil
    },
    ImageParameter(
      name: "grayscale", allowed: .flag,
      group: .effects, help: "Remove colour, keep lightness",
      standard: "0"
    ) {
      choose(flag($0), for: &$1.transform.effects.isGrayscale)
    },
    ImageParameter(
      name: "brightness", allowed: .decimal(Effects.factorRange),
      group: .effects, help: "Factor of the lightness",
      standard: "1"
    ) {
      choose(decimal($0, in: Effects.factorRange), for: &$1.transform.effects.brightness)
    },
    ImageParameter(
      name: "saturation", allowed: .decimal(Effects.factorRange),
      group: .effects, help: "Factor of the chroma",
      standard: "1"
    ) {
      choose(decimal($0, in: Effects.factorRange), for: &$1.transform.effects.saturation)
    },
    ImageParameter(
      name: "background", allowed: .color,
      group: .effects, help: "Behind alpha if the output has none, and the padding of contain",
      standard: "ffffff"
    ) {
      choose(Color(hexadecimal: $0), for: &$1.transform.output.background)
    },
  ]
}
