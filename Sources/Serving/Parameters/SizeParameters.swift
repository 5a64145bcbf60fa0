// SizeParameters: the parameters that select the source and the size.

import Model

extension ImageParameter {
  /// The parameters of groups `source` and `size`.
  static let sizeTable: [ImageParameter] = [
    ImageParameter(
      name: "url", allowed: AllowedValues(text: "an absolute http, https or local URL", form: .url),
      group: .source, help: "The image to load",
      shapesImage: false, access: .plain
    ) {
      $1.url = $0
      return true
    },
    // `ImageQuery` expands presets.
    ImageParameter(
      name: "preset",
      allowed: { AllowedValues(text: $0.presetsAllowed, names: $0.presets.keys.sorted()) },
      group: .source, help: "A named set of parameters from the configuration",
      shapesImage: false, access: .plain
    ) {
      $1.rules.presets[$0] != nil
    },
    ImageParameter(
      name: "frame", allowed: .whole(0...Int(Int32.max), saying: "a whole number, at least 0"),
      group: .source, help: "One frame of an animation, counted from 0"
    ) {
      $1.transform.selection.frame = whole($0, in: 0...Int(Int32.max))
      return $1.transform.selection.frame != nil
    },
    ImageParameter(
      name: "animated", allowed: .flag,
      group: .source, help: "Keep all frames of an animation",
      standard: "1"
    ) {
      choose(flag($0), for: &$1.transform.output.isAnimated)
    },
    ImageParameter(
      name: "scale",
      allowed: AllowedValues(
        text: "a number above 0, at most 10, or auto", names: ["auto"],
        numbers: .decimalAbove(Sizing.scaleRange)),
      group: .size,
      help: "Output pixels per image point, such as 2 for a dense screen; auto: the client's",
      access: .plain
    ) {
      if $0 == "auto" { return $1.hints.follow(\.density) }
      $1.transform.sizing.scale = decimal($0)
      return $1.transform.sizing.scale.map { Sizing.scaleRange.contains($0) && $0 > 0 } ?? false
    },
    ImageParameter(
      name: "w",
      allowed: AllowedValues(
        text: "\(text(Sizing.sideRange)), or auto", names: ["auto"],
        numbers: .whole(Sizing.sideRange), unit: "points"),
      group: .size, help: "Width of the box; auto: the width that the client's page has for it",
      access: .plain
    ) {
      if $0 == "auto" { return $1.hints.follow(\.width) }
      $1.transform.sizing.width = whole($0, in: Sizing.sideRange)
      return $1.transform.sizing.width != nil
    },
    ImageParameter(
      name: "h", allowed: .whole(Sizing.sideRange, unit: "points"),
      group: .size, help: "Height of the box",
      access: .plain
    ) {
      $1.transform.sizing.height = whole($0, in: Sizing.sideRange)
      return $1.transform.sizing.height != nil
    },
    ImageParameter(
      name: "fit", allowed: .names(Fit.allCases.map(\.rawValue)),
      group: .size, help: "Inside the box, around it, fill and crop, fit and pad, or stretch",
      standard: Sizing().fit.rawValue, access: .plain
    ) {
      choose(Fit(rawValue: $0), for: &$1.transform.sizing.fit)
    },
    ImageParameter(
      name: "position", allowed: .position,
      group: .size,
      help:
        "The part that cover keeps, or the place in contain: a name, or a focal point x,y from 0 to 1",
      standard: Sizing().position.rawValue, access: .plain
    ) {
      $1.transform.sizing.focalPoint = focalPoint($0)
      return $1.transform.sizing.focalPoint != nil
        || choose(Position(rawValue: $0), for: &$1.transform.sizing.position)
    },
    ImageParameter(
      name: "enlarge", allowed: .flag,
      group: .size, help: "Allow more pixels than the source has",
      standard: "0"
    ) {
      choose(flag($0), for: &$1.transform.sizing.enlarge)
    },
    ImageParameter(
      name: "limitbytes",
      allowed: {
        .whole(
          1...$0.highestLimitBytes, unit: "bytes",
          saying: text(1...$0.highestLimitBytes) + " of bytes")
      },
      group: .size, help: "Decoded size above which the result is scaled down",
      standard: "\(Sizing.defaultLimitBytes)"
    ) {
      choose(whole($0, in: 1...$1.rules.highestLimitBytes), for: &$1.transform.sizing.limitBytes)
    },
  ]
}

extension AllowedValues {
  /// A named position, or a focal point.
  fileprivate static let position: AllowedValues = {
    var values = names(Position.allCases.map(\.rawValue))
    values.text += ", or x,y: two numbers from 0 to 1"
    values.form = .point
    return values
  }()
}
