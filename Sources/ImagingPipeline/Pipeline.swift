// Pipeline: from a stranger's bytes to the encoded picture, one line a stage; each stage has a file of its own.

import CVips
import ImagingWire
import Model

/// The worker's whole imaging. It has no state of its own, keeps nothing between jobs, and works on one thread.
///
/// Equal bytes and an equal transform give equal bytes, always: nothing depends on time, on the machine's load, or on
/// what was processed before.
public struct Pipeline: Sendable {
  /// Starts libvips, once a process however many pipelines there are.
  ///
  /// It changes what belongs to the process: where GLib's log goes (nowhere, but for what aborts), libvips's threads
  /// (one), its cache of operations (off), and the loaders it may use (those of `ImageFormat`; PNG and JPEG inside of an
  /// SVG). It sets no locale, so that libraries keep reading and writing numbers as in C.
  ///
  /// - Throws: `ImageError.internal` when libvips does not start.
  public init() throws(ImageError) {
    try VipsLibrary.start()
  }

  /// Makes what `transform` asks for.
  ///
  /// - Parameters:
  ///   - source: The source's bytes. They may not change until this returns, and are not needed afterwards.
  ///   - transform: What is wanted.
  ///   - density: Pixels per point of the source: 1, 2 or 3.
  ///   - limits: What may be decoded.
  ///   - overlay: The watermark; that of `transform` is of no meaning here.
  /// - Throws: `ImageError.unsupportedFormat`, `.undecodable`, `.tooManyPixels`, `.tooManyFrames`; `.invalidParameter`
  ///   for a `frame` the source does not have, a `crop` outside of it and a `format` that cannot hold the result;
  ///   `.watermark` with one of the first four; `.internal`.
  public func process(
    _ source: UnsafeRawBufferPointer, transform: Transform, density: Int, limits: ImagingLimits,
    overlay: OverlaySource? = nil
  ) throws(ImageError) -> EncodedImage {
    defer { VipsLibrary.tidyUp() }
    var watch = StageWatch()

    let format = try Sniffer.format(of: source, allowed: limits.formats)
    let header = try SourceHeader(of: source, as: format, frame: transform.frame)
    try header.check(against: limits)
    if transform.product == .info(nil) {
      watch.finish(\.decode)
      return try SourceDescription(of: source, header, density: density).encoded(&watch)
    }
    let frames = header.frames(for: transform)
    var part = try SourcePart(of: header, for: transform)
    if let tolerance = transform.trim {
      part = try Trimming(source: source, header: header, frames: frames, tolerance: tolerance)
        .trimmed(part)
    }
    let geometry = Geometry(
      of: part.size, isVector: format == .svg, transform: transform, density: density,
      frames: frames, maximumPixels: limits.maximumPixels)
    let output = try Output(for: transform, header: header, frames: frames, geometry: geometry)
    let loader = Loader(
      source: source, header: header, part: part, maximumPixels: limits.maximumPixels)
    let loaded = try loader.load(for: geometry, frames: frames)
    let watermark = try overlay.map { source throws(ImageError) in
      try Overlay(source, on: geometry, limits: limits)
    }
    watch.finish(\.decode)

    var steps = FrameSteps(
      header: header, part: part,
      window: loader.window(in: frames > 1 ? header.size : loaded.size, for: geometry),
      geometry: geometry, transform: transform, output: output)
    var picture = try Animation.map(loaded, frames: frames, size: header.size) {
      frame throws(ImageError) in
      let made = try steps.apply(to: frame)
      if let watermark { return try watermark.laid(on: made) }
      return made
    }
    if let kind = transform.product.placeholder {
      let small = try SmallPicture(picture)
      watch.finish(\.transform)
      let placeholder = Placeholder(kind, of: small, on: transform.background)
      return transform.product == .placeholder(kind)
        ? try placeholder.encoded(geometry, &watch)
        : try SourceDescription(of: source, header, density: density)
          .encoded(with: placeholder, &watch)
    }
    let notes = try Notes(
      of: source, header: header, frames: frames, for: output.format,
      isBare: transform.stripsMetadata)
    picture = try notes.attached(to: picture)
    let isHeld = geometry.canvas.pixels <= Self.mostPixelsHeld || transform.maxBytes != nil
    if isHeld { picture = try picture.inMemory() }
    watch.finish(\.transform)

    let encoded = try output.encode(picture, within: transform.maxBytes, notes: notes)
    watch.finish(\.encode)
    return EncodedImage(
      encoded, format: output.format, frames: frames, geometry: geometry, timings: watch.timings)
  }

  /// Up to this many pixels a result is finished before it is encoded, so that the two times can be told apart;
  /// measured, this costs nothing. Larger ones stream from the decoder into the encoder in strips, and all their time
  /// is encoding's.
  private static let mostPixelsHeld = 4_000_000
}

/// Measures how long each stage takes.
struct StageWatch {
  private(set) var timings = Timings()
  private var last = ContinuousClock.now

  /// Books the time since the last stage's end.
  mutating func finish(_ stage: WritableKeyPath<Timings, Duration?>) {
    let now = ContinuousClock.now
    timings[keyPath: stage] = now - last
    last = now
  }
}
