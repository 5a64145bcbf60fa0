// TransformFields: encodes and decodes a transform as part of a message.

import Model

extension WireWriter {
  /// Appends a transform without its watermark, which is a message of its own.
  mutating func put(_ transform: Transform) {
    put(transform.selection)
    put(transform.sizing)
    put(transform.effects)
    put(transform.output)
    put(transform.product)
  }

  mutating func put(_ selection: Selection) {
    put(selection.frame) { $0.put(Int64($1)) }
    put(selection.rotation)
    put(selection.flip)
    put(selection.crop) { $0.put($1) }
    put(selection.trim) { $0.put(Int64($1)) }
  }

  mutating func put(_ sizing: Sizing) {
    put(sizing.scale) { $0.put($1) }
    put(sizing.width) { $0.put(Int64($1)) }
    put(sizing.height) { $0.put(Int64($1)) }
    put(sizing.fit)
    put(sizing.position)
    put(sizing.focalPoint) {
      $0.put($1.x); $0.put($1.y)
    }
    put(sizing.enlarge)
    put(Int64(sizing.limitBytes))
  }

  mutating func put(_ output: OutputOptions) {
    put(output.format) { $0.put($1) }
    put(UInt8(output.accepted.count))
    for format in output.accepted { put(format) }
    put(output.quality) { $0.put(Int64($1)) }
    let qualities = output.qualities
    for quality in [qualities.jpeg, qualities.webp, qualities.avif, qualities.jxl] {
      put(Int64(quality))
    }
    put(output.maxBytes) { $0.put(Int64($1)) }
    put(output.background)
    put(output.isAnimated)
    put(output.stripsMetadata)
    put(output.isProgressive)
  }

  mutating func put(_ area: PixelArea) {
    put(Int64(area.x))
    put(Int64(area.y))
    put(area.size)
  }

  mutating func put(_ color: Color) {
    put(color.red)
    put(color.green)
    put(color.blue)
    put(color.alpha)
  }

  mutating func put(_ effects: Effects) {
    put(effects.blur) { $0.put($1) }
    put(effects.sharpen) { $0.put($1) }
    put(effects.radius) { writer, radius in
      // 0 is no valid radius, so it encodes the maximum radius.
      if case .points(let points) = radius {
        writer.put(Int64(points))
      } else {
        writer.put(Int64(0))
      }
    }
    put(effects.tint) { $0.put($1) }
    put(effects.isGrayscale)
    put(effects.brightness)
    put(effects.saturation)
  }

  mutating func put(_ product: Product) {
    switch product {
    case .image: put(UInt8(0))
    case .info(let kind):
      put(UInt8(1))
      put(kind) { $0.put($1) }
    case .placeholder(let kind):
      put(UInt8(2))
      put(kind)
    }
  }
}

extension WireReader {
  mutating func transform() throws(WireError) -> Transform {
    var transform = Transform()
    transform.selection = try selection()
    transform.sizing = try sizing()
    transform.effects = try effects()
    transform.output = try output()
    transform.product = try product()
    return transform
  }

  mutating func selection() throws(WireError) -> Selection {
    var selection = Selection()
    selection.frame = try optional("frame") { reader throws(WireError) in
      try reader.integer("frame", in: 0...Int.max)
    }
    selection.rotation = try value("rotation", of: Rotation.self)
    selection.flip = try value("flip", of: Flip.self)
    selection.crop = try optional("crop") { reader throws(WireError) in try reader.area() }
    selection.trim = try optional("trim") { reader throws(WireError) in
      try reader.integer("trim", in: Selection.trimRange)
    }
    return selection
  }

  mutating func sizing() throws(WireError) -> Sizing {
    var sizing = Sizing()
    sizing.scale = try optional("scale") { reader throws(WireError) in
      try reader.double("scale", in: Double.leastNonzeroMagnitude...Sizing.scaleRange.upperBound)
    }
    sizing.width = try optional("width") { reader throws(WireError) in
      try reader.integer("width", in: Sizing.sideRange)
    }
    sizing.height = try optional("height") { reader throws(WireError) in
      try reader.integer("height", in: Sizing.sideRange)
    }
    sizing.fit = try value("fit", of: Fit.self)
    sizing.position = try value("position", of: Position.self)
    sizing.focalPoint = try optional("focalPoint") { reader throws(WireError) in
      FocalPoint(x: try reader.double("x", in: 0...1), y: try reader.double("y", in: 0...1))
    }
    sizing.enlarge = try flag("enlarge")
    sizing.limitBytes = try integer("limitBytes", in: 1...Int.max)
    return sizing
  }

  mutating func output() throws(WireError) -> OutputOptions {
    var output = OutputOptions()
    output.format = try optional("format") { reader throws(WireError) in
      try reader.value("format", of: ImageFormat.self)
    }
    for _ in 0..<(try number(UInt8.self)) {
      output.accepted.append(try value("accepted", of: ImageFormat.self))
    }
    output.quality = try optional("quality") { reader throws(WireError) in
      try reader.integer("quality", in: OutputOptions.qualityRange)
    }
    output.qualities.jpeg = try integer("jpeg", in: OutputOptions.qualityRange)
    output.qualities.webp = try integer("webp", in: OutputOptions.qualityRange)
    output.qualities.avif = try integer("avif", in: OutputOptions.qualityRange)
    output.qualities.jxl = try integer("jxl", in: OutputOptions.qualityRange)
    output.maxBytes = try optional("maxBytes") { reader throws(WireError) in
      try reader.integer("maxBytes", in: 1...Int.max)
    }
    output.background = try color()
    output.isAnimated = try flag("isAnimated")
    output.stripsMetadata = try flag("stripsMetadata")
    output.isProgressive = try flag("isProgressive")
    return output
  }

  mutating func area() throws(WireError) -> PixelArea {
    let range = Selection.cropRange
    return PixelArea(
      x: try integer("x", in: range), y: try integer("y", in: range),
      size: try size(in: 1...range.upperBound))
  }

  mutating func color() throws(WireError) -> Color {
    Color(
      red: try number(UInt8.self), green: try number(UInt8.self), blue: try number(UInt8.self),
      alpha: try number(UInt8.self))
  }

  mutating func effects() throws(WireError) -> Effects {
    var effects = Effects()
    effects.blur = try optional("blur") { reader throws(WireError) in
      try reader.double("blur", in: Effects.blurRange)
    }
    effects.sharpen = try optional("sharpen") { reader throws(WireError) in
      try reader.double("sharpen", in: Effects.sharpenRange)
    }
    effects.radius = try optional("radius") { reader throws(WireError) in
      let points = try reader.integer("radius", in: 0...CornerRadius.pointRange.upperBound)
      return points == 0 ? .maximum : .points(points)
    }
    effects.tint = try optional("tint") { reader throws(WireError) in try reader.color() }
    effects.isGrayscale = try flag("isGrayscale")
    effects.brightness = try double("brightness", in: Effects.factorRange)
    effects.saturation = try double("saturation", in: Effects.factorRange)
    return effects
  }

  mutating func product() throws(WireError) -> Product {
    switch try number(UInt8.self) {
    case 0: return .image
    case 1:
      return .info(
        try optional("placeholder") { reader throws(WireError) in
          try reader.value("placeholder", of: PlaceholderKind.self)
        })
    case 2: return .placeholder(try value("placeholder", of: PlaceholderKind.self))
    case let other: throw .malformed("product is \(other)")
    }
  }
}
