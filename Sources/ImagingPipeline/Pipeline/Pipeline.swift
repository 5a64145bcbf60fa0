// Pipeline: turns untrusted source bytes into an encoded image; each stage has its own file.

import CVips
import Core

/// The imaging work of an imaging worker, stateless between jobs. Its threads end with the job.
///
/// Equal bytes and an equal transform always give equal output: nothing depends on time, on the
/// machine's load, or on earlier jobs.
public struct Pipeline: Sendable {
  /// Starts libvips, once per process for any number of pipelines.
  ///
  /// Starting changes process-wide state: GLib's log is silent except for fatal messages, and
  /// libvips uses one thread and no operation cache. The allowed loaders are those of
  /// `ImageFormat`, plus PNG and JPEG inside an SVG. The locale stays "C", so libraries read and
  /// write numbers independently of the environment.
  ///
  /// - Throws: `ImageError.internal` if libvips does not start.
  public init() throws(ImageError) {
    try VipsLibrary.start()
    // Opens the file of the process's own figures, which a sealed worker could not open later.
    _ = MemoryLeft.bytes
  }

  /// Loads the code that jobs otherwise load on demand: modules and character encodings. A sealed
  /// worker can load none. What is missing is an error of the first job that needs it.
  public static func loadEverything() { VipsLibrary.loadModules() }

  /// Renders the result that `transform` describes.
  ///
  /// - Parameters:
  ///   - source: The source's bytes. They must not change until this function returns, and may be
  ///     freed afterwards.
  ///   - transform: The requested transform.
  ///   - density: Pixels per point of the source: 1, 2 or 3.
  ///   - limits: What may be decoded. A source with damage that they allow is decoded a second
  ///     time, tolerantly, and the result is marked as damaged.
  ///   - overlay: The watermark. That of `transform` is ignored.
  ///   - verifies: Whether a description requires that all pixels of the source decode.
  ///   - faces: The faces of the source; `nil`: they are searched for if the transform needs them.
  ///   - admits: Called before each decoding, with the estimated cost so far. If it returns
  ///     `false`, the job ends with `ImageError.cancelled`.
  /// - Throws:
  ///   - `ImageError.unsupportedFormat`, `.undecodable`, `.tooManyPixels`, `.tooManyFrames` or
  ///     `.tooCostly` if the source is at fault; the same within `.ofVariant` if only the requested
  ///     frame is.
  ///   - `.invalidParameter` for a `frame` that does not exist, a `crop` outside the image, and a
  ///     `format` that cannot hold the result.
  ///   - `.watermark` with one of the first four; `.outOfMemory`; `.internal` if a decodable source
  ///     fails.
  public func process(
    _ source: UnsafeRawBufferPointer, transform: Transform, density: Int, limits: ImagingLimits,
    overlay: OverlaySource? = nil, verifies: Bool = false, faces: [PixelArea]? = nil,
    admits: @escaping (JobCost) -> Bool = { _ in true }
  ) throws(ImageError) -> EncodedImage {
    try SourceMending.withMended(source) { source throws(ImageError) in
      func process(with overlay: OverlaySource?) throws(ImageError) -> EncodedImage {
        try processMended(
          Job(
            source: source, transform: transform, density: density, limits: limits,
            overlay: overlay, verifies: verifies, faces: faces, admits: admits))
      }
      guard var overlay else { return try process(with: nil) }
      return try SourceMending.withMended(overlay.bytes) { bytes throws(ImageError) in
        overlay.bytes = bytes
        return try process(with: overlay)
      }
    }
  }

  private func processMended(_ job: Job) throws(ImageError) -> EncodedImage {
    defer { VipsLibrary.tidyUp() }
    do throws(ImageError) {
      var strict = job
      strict.limits.failOn = .warning
      return try render(strict)
    } catch {
      guard job.limits.failOn < .warning, error.isOfDamage else { throw error }
      VipsLibrary.tidyUp()
      var image = try render(job)
      image.report.isDamaged = true
      return image
    }
  }

  /// One job: the parameters of `process`.
  private struct Job {
    let source: UnsafeRawBufferPointer
    let transform: Transform
    let density: Int
    var limits: ImagingLimits
    let overlay: OverlaySource?
    let verifies: Bool
    var faces: [PixelArea]?
    /// The estimate of a search for faces.
    var secondsOfSearch = 0.0
    let admits: (JobCost) -> Bool

    /// Checks an estimate against the limits, and asks whether the job may go on.
    func admit(_ cost: JobCost) throws(ImageError) {
      try cost.check(limits)
      guard admits(cost) else { throw .cancelled }
    }

    /// Returns the source's faces. A search decodes the source.
    mutating func faces(
      _ header: SourceHeader, _ work: SourceCost
    ) throws(ImageError) -> [PixelArea] {
      if let faces { return faces }
      let search = try FaceSearch(of: source, header, limits: limits)
      var cost = work.cost(of: source, header, frames: 1, share: search.shareDecoded)
      cost.seconds += FaceSearch.seconds
      secondsOfSearch = cost.seconds
      cost.add(decoding: source, header)
      try admit(cost)
      let found = try search.faces()
      faces = found
      return found
    }
  }

  /// Renders the result, failing on the damage that `limits` names.
  private func render(_ given: Job) throws(ImageError) -> EncodedImage {
    var job = given
    var watch = StageWatch()

    let format = try Sniffer.format(of: job.source, allowed: job.limits.formats)
    try ContainerLengths.check(job.source, as: format, limits: job.limits)
    if let cost = try JobCost.ofExpensiveOpening(job.source, as: format, job.limits) {
      guard job.admits(cost) else { throw .cancelled }
    }
    let header = try SourceHeader(
      of: job.source, as: format, frame: job.transform.selection.frame, failOn: job.limits.failOn)
    try header.check(against: job.limits)
    let isDescribed = job.transform.product == .info(nil)
    var work = SourceCost()
    if job.verifies || !isDescribed {
      work = try SourceCost.check(job.source, header: header, limits: job.limits)
      try work.cost(of: job.source, header, frames: 1, share: 0).check(job.limits)
    }
    if job.verifies {
      var cost = work.cost(
        of: job.source, header, frames: header.isAnimation ? header.pages : 1)
      cost.add(decoding: job.source, header)
      cost.add(drawing: work.vector, header, scale: 1)
      try job.admit(cost)
      do throws(ImageError) {
        try Soundness.verify(job.source, header)
      } catch {
        let frames = header.isAnimation ? header.pages : 1
        throw Blame.settled(error, source: job.source, header: header, frames: frames)
      }
    }
    if isDescribed {
      watch.finish(\.decode)
      return try SourceDescription(of: job.source, header, density: job.density).encoded(&watch)
    }
    let frames = header.frames(for: job.transform)
    do throws(ImageError) {
      var image = try make(&job, header: header, frames: frames, work: work, watch: &watch)
      image.report.faces = job.faces
      return image
    } catch {
      throw Blame.settled(error, source: job.source, header: header, frames: frames)
    }
  }

  /// Renders the result of a source whose header is within the limits.
  private func make(
    _ job: inout Job, header: SourceHeader, frames: Int, work: SourceCost, watch: inout StageWatch
  ) throws(ImageError) -> EncodedImage {
    var transform = job.transform
    if let passed = try passed(job, header: header, watch: &watch) { return passed }
    let decoded = header.decodedFrames(for: transform)
    var part = try SourceRegion(of: header, for: transform)
    let whole = work.cost(of: job.source, header, frames: decoded)
    if case .faces(let margin)? = transform.selection.crop?.place {
      let faces = try job.faces(header, work)
      part = part.around(faces, margin: margin)
      if faces.isEmpty { transform.selection.crop = nil }
    }
    if let tolerance = transform.selection.trim {
      // Finding the margins decodes the source.
      var cost = whole
      cost.add(decoding: job.source, header)
      cost.add(drawing: work.vector, header, scale: Trimming.scale(of: header))
      try job.admit(cost)
      part = try Trimming(
        source: job.source, header: header, frames: frames, tolerance: tolerance,
        colour: transform.selection.trimColor
      ).trimmed(part, equally: transform.selection.trimEqual)
    }
    func laidOut() -> Geometry {
      Geometry(
        of: part.size, isVector: header.format == .svg, sizing: transform.sizing,
        density: job.density, frames: frames,
        limits: Geometry.Limits(job.limits, for: transform.product))
    }
    var geometry = laidOut()
    if geometry.isCut, transform.sizing.position == .faces, transform.sizing.focalPoint == nil {
      let faces = try job.faces(header, work)
      transform.sizing.focalPoint = part.focalPoint(of: faces, for: geometry)
      transform.sizing.position = .attention
      geometry = laidOut()
    }
    let output = try Output(
      for: transform, header: header, frames: frames, geometry: geometry,
      limits: job.limits)
    let loader = Loader(
      source: job.source, header: header, part: part, maximumPixels: job.limits.maximumPixels,
      threads: job.limits.maximumThreads)
    var cost = work.cost(
      of: job.source, header, frames: decoded, share: loader.shareDecoded(for: geometry))
    if transform.selection.trim != nil { cost.add(trimming: header, by: whole) }
    cost.add(
      decoding: job.source, header, shrunkBy: loader.shrinkOfWebP(for: geometry, frames: frames),
      spare: job.limits.maximumQuickBytes)
    cost.add(drawing: work.vector, header, scale: loader.scaleOfVector(for: geometry))
    if transform.product.placeholder == nil {
      // The encoders' memory is the variant's; what decoding takes alone is checked first.
      try cost.check(job.limits)
      cost.add(effectsOf: transform, on: header, geometry, frames: frames)
      cost.seconds += job.secondsOfSearch
      if let overlay = job.overlay {
        let decoding = try Overlay.cost(of: overlay, limits: job.limits)
        cost.add(watermark: decoding, on: geometry.canvas, frames: frames)
      }
      let encoding = JobCost.Encoding(
        source: job.source, header: header, geometry: geometry, frames: frames,
        transform: transform)
      cost.add(encoding, as: output.format)
      var largest = output.format
      if output.reducesColours || output.format == .png && output.paletteBits != nil {
        // The PNG is encoded twice, and libimagequant finds its palette as that of a GIF.
        cost.add(encoding, as: .gif)
        largest = .gif
      }
      cost.add(bytesOf: geometry.canvas, frames: frames, as: largest, hasAlpha: header.hasAlpha)
    }
    try job.admit(cost)
    let loaded = try loader.load(for: geometry, frames: frames)
    let watermark = try job.overlay.map { source throws(ImageError) in
      try Overlay(source, on: geometry, limits: job.limits)
    }
    watch.finish(\.decode)

    var steps = FrameSteps(
      header: header, part: part,
      window: loaded.window, geometry: geometry, transform: transform, output: output,
      threads: job.limits.maximumThreads)
    var image = try Animation.map(loaded.image, frames: frames, size: header.size) {
      frame throws(ImageError) in
      let made = try steps.apply(to: frame)
      if let watermark { return try watermark.composited(onto: made) }
      return made
    }
    if let kind = transform.product.placeholder {
      let small = try SmallImage(image)
      watch.finish(\.transform)
      let placeholder = Placeholder(
        kind: kind, small: small, background: transform.output.background)
      return transform.product == .placeholder(kind)
        ? try placeholder.encoded(geometry, watch: &watch)
        : try SourceDescription(of: job.source, header, density: job.density)
          .encoded(with: placeholder, &watch)
    }
    let notes = try OutputMetadata(
      of: job.source, header: header, frames: frames, for: output,
      isBare: transform.output.stripsMetadata)
    image = try notes.attached(to: image)
    let lossless = LosslessResult(
      source: job.source, header: header, part: part, frames: frames, geometry: geometry,
      transform: transform, output: output)
    // The source's bytes still contain the damage that a tolerant decoder skipped.
    let isWhole = job.limits.failOn == .warning
    let own = job.overlay == nil && isWhole ? lossless.bytes() : nil
    let isSmall = (own?.count ?? .max) <= job.source.count
    let maximumBytes = job.overlay == nil && !isSmall ? lossless.maximumBytes : nil
    let isHeld =
      geometry.canvas.pixels <= Self.maximumPixelsHeld || transform.output.maxBytes != nil
      || (maximumBytes != nil && geometry.canvas.pixels <= Self.maximumPixelsFitted
        && MemoryLeft.hasPlenty(for: geometry.canvas.pixels * 4))
    if isHeld { image = try image.inMemory() }
    watch.finish(\.transform)

    var encoded = try output.encode(image, within: transform.output.maxBytes, notes: notes)
    if let maximumBytes, isHeld, encoded.bytes.count > maximumBytes,
      let smaller = try output.encode(image, inPlaceOf: maximumBytes, notes: notes)
    {
      encoded = smaller
    }
    // The whole source is decoded at this point, so its bytes are known to be intact.
    var encodedFormat = output.format
    var isEncodedHere = true
    if let own,
      lossless.isBetter(own, than: encoded, within: transform.output.maxBytes ?? maximumBytes)
    {
      encoded = Encoded(bytes: try GLibBytes(copying: own), size: geometry.canvas, quality: nil)
      encodedFormat = header.format
      isEncodedHere = false
    }
    try encoded.check(as: encodedFormat, isEncodedHere: isEncodedHere)
    watch.finish(\.encode)
    return EncodedImage(
      encoded, format: encodedFormat, frames: frames,
      droppedFrames: header.droppedFrames(from: frames, for: transform), geometry: geometry,
      timings: watch.timings)
  }

  /// Returns the source as it is, without metadata where that is possible; `nil` if the request
  /// does not ask for that, or the source is larger than results may be.
  private func passed(
    _ job: Job, header: SourceHeader, watch: inout StageWatch
  ) throws(ImageError) -> EncodedImage? {
    let passed = job.transform.output.passed
    let isPassed =
      passed.contains(.all) || passed.contains(.animated) && header.isAnimation
      || passed.contains(.vector) && header.format == .svg
    let size = header.orientation.swapsSides ? header.size.turned : header.size
    guard isPassed, job.transform.product == .image, job.overlay == nil,
      size.pixels <= job.limits.maximumResultPixels,
      FormatSigns.format(of: job.source) == header.format
    else { return nil }
    // Without its metadata an image that is to be turned would not be.
    let isBare = job.transform.output.stripsMetadata && header.orientation == .up
    let stripped = isBare ? Stripping.stripped(job.source, as: header.format) : nil
    watch.finish(\.decode)
    return EncodedImage(
      bytes: try GLibBytes(copying: stripped ?? Array(job.source)),
      content: .image(
        RenderedImage(
          format: header.format, size: size, frames: header.isAnimation ? header.pages : 1,
          density: Double(job.density))),
      timings: watch.timings)
  }

  /// Results of up to this many pixels are rendered to memory before encoding, so that both stages
  /// can be timed separately. Larger results stream in strips from the decoder to the encoder, and
  /// their whole time counts as encoding.
  private static let maximumPixelsHeld = 4_000_000
  /// Results of up to this many pixels are held in memory, so that a result larger than its source
  /// can be encoded again. By default no result has more (`imaging.maximum_result_pixels`).
  private static let maximumPixelsFitted = 25_000_000
}

extension ImageError {
  /// Whether a more tolerant decoder may succeed.
  fileprivate var isOfDamage: Bool {
    switch self {
    case .undecodable, .ofVariant(.undecodable), .watermark(.undecodable): true
    default: false
    }
  }
}

/// Measures the duration of each stage.
struct StageWatch {
  private(set) var timings = Timings()
  private var last = ContinuousClock.now

  /// Assigns the time since the end of the previous stage to `stage`.
  mutating func finish(_ stage: WritableKeyPath<Timings, Duration?>) {
    let now = ContinuousClock.now
    timings[keyPath: stage] = now - last
    last = now
  }
}
