// ReportFields: encodes and decodes what a worker reports of a result, as part of a message.

import Model

extension RenderedImage {
  /// The range of a side in pixels, up to libvips's `VIPS_MAX_COORD`.
  static let sideRange = 1...10_000_000
  /// The range of a requested side: the longest one beside the highest ratio of sides and `scale`.
  static let requestedRange = 1...10_000_000_000_000
}

extension WireWriter {
  mutating func put(_ report: RenderReport) {
    put(report.content.image) { $0.put($1) }
    put(report.digest)
    let timings = report.timings
    for duration in [timings.decode, timings.transform, timings.encode] {
      put(duration) { $0.put($1) }
    }
    put(report.isDamaged)
  }

  mutating func put(_ image: RenderedImage) {
    put(image.format)
    put(image.size)
    put(Int64(image.frames))
    put(image.density)
    put(image.scaledDownFrom) { $0.put($1) }
    put(image.quality) { $0.put(Int64($1)) }
    put(Int64(image.droppedFrames))
  }

  mutating func put(_ size: PixelSize) {
    put(Int64(size.width))
    put(Int64(size.height))
  }

  /// Appends whole nanoseconds.
  mutating func put(_ duration: Duration) {
    let parts = duration.components
    put(parts.seconds * 1_000_000_000 + parts.attoseconds / 1_000_000_000)
  }
}

extension WireReader {
  mutating func report() throws(WireError) -> RenderReport {
    let image = try optional("image") { reader throws(WireError) in try reader.image() }
    let digest = try text("digest")
    let isDigest =
      digest.utf8.count == 32
      && digest.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
    guard isDigest else { throw .malformed("digest is not 32 hexadecimal digits") }
    var timings = Timings()
    timings.decode = try optionalDuration("decode")
    timings.transform = try optionalDuration("transform")
    timings.encode = try optionalDuration("encode")
    return RenderReport(
      content: image.map(VariantContent.image) ?? .sourceDescription, digest: digest,
      timings: timings, isDamaged: try flag("isDamaged"))
  }

  mutating func image() throws(WireError) -> RenderedImage {
    let format = try value("format", of: ImageFormat.self)
    guard ImageFormat.outputs.contains(format) else {
      throw .malformed("format is \(format.rawValue)")
    }
    var image = RenderedImage(
      format: format, size: try size(), frames: try integer("frames", in: 1...Int(Int32.max)),
      density: try double("density", in: Double.leastNormalMagnitude...1_000))
    // This size was only requested (`enlarge`), not rendered.
    image.scaledDownFrom = try optional("scaledDownFrom") { reader throws(WireError) in
      try reader.size(in: RenderedImage.requestedRange)
    }
    image.quality = try optional("quality") { reader throws(WireError) in
      try reader.integer("quality", in: OutputOptions.qualityRange)
    }
    image.droppedFrames = try integer("droppedFrames", in: 0...Int(Int32.max))
    return image
  }

  mutating func size(
    in range: ClosedRange<Int> = RenderedImage.sideRange
  ) throws(WireError) -> PixelSize {
    PixelSize(width: try integer("width", in: range), height: try integer("height", in: range))
  }

  /// Reads a duration of at most a day, since no job runs longer.
  mutating func optionalDuration(_ name: String) throws(WireError) -> Duration? {
    try optional(name) { reader throws(WireError) in
      .nanoseconds(try reader.integer(name, in: 0...86_400_000_000_000))
    }
  }
}
