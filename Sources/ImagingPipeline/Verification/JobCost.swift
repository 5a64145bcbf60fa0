// JobCost: estimates the processor time and the memory of a job from headers, before decoding.

import ImagingWire
import Model

/// An estimate by formats and sizes. The limits of a worker stop jobs that take more.
public struct JobCost: Hashable, Sendable {
  /// The estimated processor time.
  public internal(set) var seconds = 0.0
  /// The estimated memory that the job needs besides the worker's own, in bytes.
  public internal(set) var bytes = 0
  /// Whether a vector may take long. What it takes is hardly known before it is drawn.
  private var mayDrawLong = false
  /// The part of `seconds` that encodes the frames of an animation, which takes long for ordinary ones, too, or that
  /// recompresses, which gives way to others.
  var secondsOfFrames = 0.0
  /// Whether the estimate is a bound for every transform of the source.
  var isOfSource = true

  /// Jobs with a higher estimate are expensive: others may overtake them.
  private static let maximumQuickSeconds = 1.0
  /// Vectors with a higher estimate are expensive: they may take ten times as long.
  private static let maximumQuickDrawing = 0.1
  /// How much lower the memory of decoding may be than its estimate.
  private static let leastShareOfDecoding = 0.85
  /// The same with the encoding, which may begin when the decoder has returned its memory.
  private static let leastShare = 0.6

  /// Creates an estimate of nothing.
  public init() {}

  /// Whether the job is expensive in time or memory. It then waits for its turn and for room.
  public func isExpensive(_ limits: ImagingLimits) -> Bool {
    mayDrawLong || seconds > Self.maximumQuickSeconds || bytes > limits.maximumQuickBytes
  }

  /// Estimates the recompression of a JPEG or PNG.
  init(recompressing size: PixelSize, as format: ImageFormat) {
    let pixels = Double(size.pixels)
    isOfSource = false
    seconds = pixels * (format == .jpeg ? 60 : 1_500) / 1e9
    secondsOfFrames = seconds
    // The coefficients of three components with all samples; up to six copies of the rows.
    bytes = Int(min(8e6 + pixels * (format == .jpeg ? 8 : 24), 1e15))
  }

  /// Adds the drawing of a vector. It refuses none: that takes a measurement.
  ///
  /// - Parameters:
  ///   - header: The vector's; other sources add nothing.
  ///   - scale: How large it is drawn.
  mutating func add(drawing vector: VectorLimits?, _ header: SourceHeader, scale: Double) {
    guard let vector else { return }
    isOfSource = false
    let seconds = vector.seconds(drawing: header.size.area * scale * scale)
    mayDrawLong = mayDrawLong || seconds > Self.maximumQuickDrawing
  }

  /// Checks the estimate against the limits.
  ///
  /// - Throws: `ImageError.tooCostly` above a limit, within `.ofVariant` if other variants of the source may cost less,
  ///   or if memory is missing, which the operator gives.
  func check(_ limits: ImagingLimits) throws(ImageError) {
    try check(seconds - secondsOfFrames, atMost: limits.maximumSecondsOfPixels)
    try check(seconds, atMost: limits.maximumSeconds)
    let share = isOfSource ? Self.leastShareOfDecoding : Self.leastShare
    guard Double(bytes) * share <= Double(limits.maximumBytes) else {
      throw .ofVariant(
        .tooCostly(
          reason: "it would take about \(bytes >> 20) MiB of memory; a worker has "
            + "\(limits.maximumBytes >> 20)", key: ImagingLimits.memoryKey))
    }
  }

  private func check(_ seconds: Double, atMost limit: Double) throws(ImageError) {
    guard seconds > limit else { return }
    let error = ImageError.tooCostly(
      reason: "it would take about \(Int(seconds.rounded())) s of processor time; at most "
        + "\(Int(limit)) are allowed", key: ImagingLimits.timeKey)
    throw isOfSource ? error : .ofVariant(error)
  }
}
