// JobCost: estimates the processor time and the memory of a job from headers, before decoding.

import ImagingWire
import Model

/// An estimate by formats and sizes. The limits of a worker stop jobs that take more.
public struct JobCost: Hashable, Sendable {
  /// The estimated processor time.
  public private(set) var seconds = 0.0
  /// The estimated memory that the job needs besides the worker's own, in bytes.
  public internal(set) var bytes = 0
  /// The part of `seconds` that was estimated from the elements of a vector.
  private var secondsOfVector = 0.0
  /// Whether the estimate is the same for every transform of the source.
  private var isOfSource = true

  /// Jobs with a higher estimate are expensive: others may overtake them.
  private static let maximumQuickSeconds = 1.0
  /// How often more time than estimated a vector may take (docs/decisions/006-measurements-behind-constants.md).
  private static let doubtOfVectors = 10.0
  /// How much lower the memory of decoding may be than its estimate.
  private static let leastShareOfDecoding = 0.85
  /// The same with the encoding, which may begin when the decoder has returned its memory.
  private static let leastShare = 0.6

  /// Creates an estimate of nothing.
  public init() {}

  /// Whether the job is expensive in time or memory. It then waits for its turn and for room.
  public func isExpensive(_ limits: ImagingLimits) -> Bool {
    seconds + (Self.doubtOfVectors - 1) * secondsOfVector > Self.maximumQuickSeconds
      || bytes > limits.maximumQuickBytes
  }

  /// Estimates the decoding of the whole source, because most formats cannot be decoded in part.
  init(decoding header: SourceHeader) {
    // The cost of a vector depends on its drawn size (`VectorCost`).
    guard header.format != .svg else { return }
    let frames = header.isAnimation ? header.pages : 1
    seconds = Double(header.size.pixels) * Double(frames) * Self.nanoseconds(header.format) / 1e9
  }

  /// Lowers the estimate for a baseline JPEG that is decoded at a part of its size: all codes are read, and few pixels
  /// are made. See docs/decisions/006-measurements-behind-constants.md.
  ///
  /// - Parameter eighths: How much of each side is decoded.
  mutating func shrink(_ source: UnsafeRawBufferPointer, _ header: SourceHeader, eighths: Int) {
    // Arithmetic codes take longer, and a progressive one has all coefficients before it has a pixel.
    guard eighths < 8, let process = JPEGProcess(of: source), process.kind < 2,
      process.coefficientBytes == 0
    else { return }
    let share = Double(eighths * eighths) / 64
    let ofPixels = Double(header.size.pixels) * (2 + 13 * share)
    seconds = min(seconds, (Double(source.count) * 20 + ofPixels) / 1e9)
  }

  /// Estimates the recompression of a JPEG or PNG (docs/decisions/024-effort-follows-popularity.md).
  init(recompressing size: PixelSize, as format: ImageFormat) {
    let pixels = Double(size.pixels)
    isOfSource = false
    seconds = pixels * (format == .jpeg ? 60 : 1_500) / 1e9
    // The coefficients of three components with all samples; up to six copies of the rows.
    bytes = Int(min(8e6 + pixels * (format == .jpeg ? 8 : 24), 1e15))
  }

  /// Adds the estimate for drawing a vector, in seconds.
  mutating func add(drawing seconds: Double) {
    guard seconds > 0 else { return }
    isOfSource = false
    self.seconds += seconds
    secondsOfVector += seconds
  }

  /// Adds the estimate for encoding.
  ///
  /// - Parameter isSearched: Whether the quality is searched for, which takes several attempts.
  mutating func add(
    encoding size: PixelSize, frames: Int, as format: ImageFormat, isSearched: Bool
  ) {
    isOfSource = false
    let pixels = Double(size.pixels) * Double(frames) * (isSearched ? Self.attempts : 1)
    seconds += pixels * Self.nanosecondsOfEncoding(format) / 1e9
  }

  /// Checks the estimate against the limits.
  ///
  /// - Throws: `ImageError.tooCostly` above a limit, within `.ofVariant` if other variants of the source may cost less,
  ///   or if memory is missing, which the operator gives.
  func check(_ limits: ImagingLimits) throws(ImageError) {
    if seconds > limits.maximumSeconds {
      let error = ImageError.tooCostly(
        reason: "it would take about \(Int(seconds.rounded())) s of processor time; at most "
          + "\(Int(limits.maximumSeconds)) are allowed", key: ImagingLimits.timeKey)
      throw isOfSource ? error : .ofVariant(error)
    }
    let share = isOfSource ? Self.leastShareOfDecoding : Self.leastShare
    guard Double(bytes) * share <= Double(limits.maximumBytes) else {
      throw .ofVariant(
        .tooCostly(
          reason: "it would take about \(bytes >> 20) MiB of memory; a worker has "
            + "\(limits.maximumBytes >> 20)", key: ImagingLimits.memoryKey))
    }
  }

  /// The cost of a `maxbytes` search in encodes of the full size: at most eight encodes, most of them of smaller
  /// images.
  private static let attempts = 5.0

  /// Nanoseconds to decode a pixel, rounded from a measurement: docs/decisions/006-measurements-behind-constants.md.
  private static func nanoseconds(_ format: ImageFormat) -> Double {
    switch format {
    case .jpeg: 15
    case .png: 30
    case .gif: 15
    case .webp: 40
    case .heic, .avif: 40
    case .jxl: 60
    case .jp2: 110
    case .tiff: 20
    case .bmp, .ico: 10
    case .svg: 0
    }
  }

  /// Nanoseconds to encode a pixel, with the resize.
  private static func nanosecondsOfEncoding(_ format: ImageFormat) -> Double {
    switch format {
    case .jpeg: 20
    case .png: 60
    case .webp: 60
    case .avif: 170
    case .jxl: 90
    case .gif: 250
    case .tiff: 30
    case .heic, .jp2, .svg, .bmp, .ico: 0
    }
  }
}
