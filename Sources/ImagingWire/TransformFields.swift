// TransformFields: encodes and decodes a transform as part of a message.

import Model

extension WireWriter {
  mutating func put(_ transform: Transform) {
    put(transform.scale) { $0.put($1) }
    put(transform.width) { $0.put(Int64($1)) }
    put(transform.height) { $0.put(Int64($1)) }
    put(transform.fit)
    put(transform.position)
    put(transform.enlarge)
    put(transform.format) { $0.put($1) }
    put(transform.quality) { $0.put(Int64($1)) }
    let qualities = transform.qualities
    for quality in [qualities.jpeg, qualities.webp, qualities.avif, qualities.jxl] {
      put(Int64(quality))
    }
    put(transform.background)
    put(Int64(transform.limitBytes))
    put(transform.frame) { $0.put(Int64($1)) }
    put(transform.progressive)
    put(transform.focalPoint) {
      $0.put($1.x); $0.put($1.y)
    }
    put(transform.rotation)
    put(transform.flip)
    put(transform.crop) { $0.put($1) }
    put(transform.trim) { $0.put(Int64($1)) }
    put(UInt8(transform.accepted.count))
    for format in transform.accepted { put(format) }
    put(transform.maxBytes) { $0.put(Int64($1)) }
    put(transform.isAnimated)
    put(transform.stripsMetadata)
    put(transform.effects)
    put(transform.product)
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
    transform.scale = try optional("scale") { reader throws(WireError) in
      try reader.double("scale", in: Double.leastNonzeroMagnitude...Transform.scaleRange.upperBound)
    }
    transform.width = try optional("width") { reader throws(WireError) in
      try reader.integer("width", in: Transform.sideRange)
    }
    transform.height = try optional("height") { reader throws(WireError) in
      try reader.integer("height", in: Transform.sideRange)
    }
    transform.fit = try value("fit", of: Fit.self)
    transform.position = try value("position", of: Position.self)
    transform.enlarge = try flag("enlarge")
    transform.format = try optional("format") { reader throws(WireError) in
      try reader.value("format", of: ImageFormat.self)
    }
    transform.quality = try optional("quality") { reader throws(WireError) in
      try reader.integer("quality", in: Transform.qualityRange)
    }
    transform.qualities.jpeg = try integer("jpeg", in: Transform.qualityRange)
    transform.qualities.webp = try integer("webp", in: Transform.qualityRange)
    transform.qualities.avif = try integer("avif", in: Transform.qualityRange)
    transform.qualities.jxl = try integer("jxl", in: Transform.qualityRange)
    transform.background = try color()
    transform.limitBytes = try integer("limitBytes", in: 1...Int.max)
    transform.frame = try optional("frame") { reader throws(WireError) in
      try reader.integer("frame", in: 0...Int.max)
    }
    transform.progressive = try flag("progressive")
    transform.focalPoint = try optional("focalPoint") { reader throws(WireError) in
      FocalPoint(x: try reader.double("x", in: 0...1), y: try reader.double("y", in: 0...1))
    }
    transform.rotation = try value("rotation", of: Rotation.self)
    transform.flip = try value("flip", of: Flip.self)
    transform.crop = try optional("crop") { reader throws(WireError) in try reader.area() }
    transform.trim = try optional("trim") { reader throws(WireError) in
      try reader.integer("trim", in: Transform.trimRange)
    }
    for _ in 0..<(try number(UInt8.self)) {
      transform.accepted.append(try value("accepted", of: ImageFormat.self))
    }
    transform.maxBytes = try optional("maxBytes") { reader throws(WireError) in
      try reader.integer("maxBytes", in: 1...Int.max)
    }
    transform.isAnimated = try flag("isAnimated")
    transform.stripsMetadata = try flag("stripsMetadata")
    transform.effects = try effects()
    transform.product = try product()
    return transform
  }

  mutating func area() throws(WireError) -> PixelArea {
    let range = Transform.cropRange
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
