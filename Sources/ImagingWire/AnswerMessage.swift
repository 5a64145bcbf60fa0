// AnswerMessage: the messages from a worker to the server.

import Model

/// A message from a worker. Workers decode untrusted input, so every field is validated.
public enum AnswerMessage: Hashable, Sendable {
  /// The worker has started, is sealed as reported, and can take jobs. Sent once, as the first message.
  case ready(SandboxReport)
  /// The job is done. The bytes are in the worker's file of results.
  case result(ResultMessage)
  /// The job failed.
  case failure(id: UInt64, ImageError)
  /// The job is expensive, and was to be done only if it is not. `bytes` is its estimated memory.
  case takesLong(id: UInt64, bytes: Int)

  /// Returns the encoded message.
  public func encoded() -> [UInt8] {
    switch self {
    case .ready(let report):
      var writer = WireWriter(.ready)
      writer.put(UInt8(clamping: report.landlock))
      writer.put(report.seccomp)
      return writer.bytes
    case .result(let result): return result.encoded()
    case .failure(let id, let error):
      var writer = WireWriter(.failure)
      writer.put(id)
      writer.put(error)
      return writer.bytes
    case .takesLong(let id, let bytes):
      var writer = WireWriter(.takesLong)
      writer.put(id)
      writer.put(Int64(bytes))
      return writer.bytes
    }
  }

  /// Decodes a message.
  ///
  /// - Throws: `WireError.malformed`.
  public init(decoding bytes: [UInt8]) throws(WireError) {
    var reader = try WireReader(bytes)
    switch reader.kind {
    case .ready:
      self = .ready(
        SandboxReport(
          landlock: Int(try reader.number(UInt8.self)), seccomp: try reader.flag("seccomp")))
    case .result: self = .result(try ResultMessage(reading: &reader))
    case .failure: self = .failure(id: try reader.number(UInt64.self), try reader.imageError())
    case .takesLong:
      self = .takesLong(
        id: try reader.number(UInt64.self),
        bytes: try reader.integer("bytes", in: 0...WireReader.mostPixels))
    case .job: throw .malformed("a job, not an answer")
    }
    try reader.end()
  }
}

/// The answer to a finished job. The bytes of its result are in the worker's file of results.
public struct ResultMessage: Hashable, Sendable {
  /// The id of the job.
  public var id: UInt64
  /// What the bytes are. Of the timings only `decode`, `transform` and `encode` are sent.
  public var report: RenderReport
  /// Length of the result in bytes, which is also the length of the memory file.
  public var byteCount: Int

  /// Creates an answer.
  public init(id: UInt64, report: RenderReport, byteCount: Int) {
    self.id = id
    self.report = report
    self.byteCount = byteCount
  }

  func encoded() -> [UInt8] {
    var writer = WireWriter(.result)
    writer.put(id)
    writer.put(report)
    writer.put(Int64(byteCount))
    return writer.bytes
  }

  init(reading reader: inout WireReader) throws(WireError) {
    id = try reader.number(UInt64.self)
    report = try reader.report()
    byteCount = try reader.integer("byteCount", in: 1...Int.max / 2)
  }
}

extension WireWriter {
  /// Appends an error. Errors that a pipeline cannot throw become internal errors.
  mutating func put(_ error: ImageError) {
    switch error {
    case .invalidParameter(let name, let value, let allowed):
      put(UInt8(1))
      put(name)
      put(value)
      put(allowed)
    case .unsupportedFormat(let detail):
      put(UInt8(2))
      put(detail)
    case .undecodable(let detail):
      put(UInt8(3))
      put(detail)
    case .tooManyPixels(let pixels, let limit):
      put(UInt8(4))
      put(Int64(min(pixels, WireReader.mostPixels)))
      put(Int64(limit))
    case .tooManyFrames(let frames, let limit):
      put(UInt8(5))
      put(Int64(frames))
      put(Int64(limit))
    case .sourceTooLarge(let limit, _):
      put(UInt8(6))
      put(Int64(limit))
    case .watermark(let cause):
      put(UInt8(8))
      put(cause)
    case .ofVariant(let cause):
      put(UInt8(9))
      put(cause)
    case .tooCostly(let reason, let key):
      put(UInt8(key == nil ? 10 : key == ImagingLimits.memoryKey ? 13 : 12))
      put(reason)
    case .unsupportedKind(let reason):
      put(UInt8(14))
      put(reason)
    case .outOfMemory(let detail):
      put(UInt8(11))
      put(detail)
    case .internal(let detail):
      put(UInt8(7))
      put(detail)
    default:
      put(UInt8(7))
      put(error.logDetail ?? error.code)
    }
  }
}

extension WireReader {
  /// More pixels than any header states that a decoder reads, and more bytes than any file has.
  static let mostPixels = 1 << 53

  /// Reads an error.
  ///
  /// - Parameter holders: the allowed kinds that wrap another error. A variant's error may wrap a
  ///   watermark's error. A watermark's error wraps neither.
  mutating func imageError(holders: Set<UInt8> = [8, 9]) throws(WireError) -> ImageError {
    let kind = try number(UInt8.self)
    switch kind {
    case 1:
      return .invalidParameter(
        name: try text("name"), value: try text("value"), allowed: try text("allowed"))
    case 2: return .unsupportedFormat(detail: try text("detail"))
    case 3: return .undecodable(detail: try text("detail"))
    case 4:
      return .tooManyPixels(
        pixels: try integer("pixels", in: 0...Self.mostPixels),
        limit: try integer("limit", in: 0...Self.mostPixels))
    case 5:
      return .tooManyFrames(
        frames: try integer("frames", in: 0...Int(Int32.max)),
        limit: try integer("limit", in: 0...Int(Int32.max)))
    case 6: return .sourceTooLarge(limit: try integer("limit", in: 0...Self.mostPixels))
    case 7: return .internal(detail: try text("detail"))
    case 8 where holders.contains(kind): return .watermark(try imageError(holders: []))
    case 9 where holders.contains(kind): return .ofVariant(try imageError(holders: [8]))
    case 10: return .tooCostly(reason: try text("reason"))
    case 12: return .tooCostly(reason: try text("reason"), key: ImagingLimits.timeKey)
    case 13: return .tooCostly(reason: try text("reason"), key: ImagingLimits.memoryKey)
    case 14: return .unsupportedKind(reason: try text("reason"))
    case 11: return .outOfMemory(detail: try text("detail"))
    case let other: throw .malformed("error is \(other)")
    }
  }
}
