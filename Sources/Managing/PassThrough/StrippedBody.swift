// StrippedBody: an arriving image whose metadata behind its head is overwritten.

import CDeflate
import Core

/// One reader's view of a plain image that is arriving: comments, metadata and data behind the
/// image's end are zeros, because the length of the answer is promised before they arrive. The
/// stored variant has the same pixels without them.
final class StrippedBody: StreamingBody {
  private struct Progress {
    var blank: BlankedMetadata
    var position = 0
  }

  private let body: any StreamingBody
  private let progress: Lock<Progress>

  /// Creates a view of a body whose head `PassThroughCheck` called plain.
  init(_ body: any StreamingBody, format: ImageFormat) {
    self.body = body
    progress = Lock(Progress(blank: BlankedMetadata(format)))
  }

  var origin: OriginResponse { body.origin }
  var expected: Int? { body.expected }
  var version: UInt64 { body.version }
  var isComplete: Bool { body.isComplete }

  /// Copies available bytes. Its reader reads each byte once, in order.
  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead {
    let result = body.read(at: position, into: buffer)
    guard case .bytes(let count) = result else { return result }
    return progress.withLock { progress in
      guard progress.position == position else { return .failed }
      progress.position += count
      progress.blank.apply(to: UnsafeMutableRawBufferPointer(rebasing: buffer[..<count]))
      return result
    }
  }

  func observe(_ observer: @escaping @Sendable () -> Void) -> Observation { body.observe(observer) }
}

/// Overwrites metadata in the bytes of a JPEG, PNG or GIF, which come in pieces. A WebP's head
/// tells what it has. A segment keeps its length, so decoders skip it as before.
struct BlankedMetadata {
  /// What the next bytes are.
  private enum Part {
    /// Bytes that stay or become zeros, and what follows them.
    indirect case run(Int, isBlank: Bool, then: Part)
    /// The entropy-coded data of a JPEG, up to a marker (ISO/IEC 10918-1, B.1.1).
    case scan
    /// A number of bytes that tell what follows.
    case field(Int, Field)
    /// The checksum of a blank chunk, from its n-th byte on.
    case checksum(Int)
    /// What is behind the end of the image.
    case rest
    /// A format without metadata behind its head.
    case anything
  }

  private enum Field {
    case marker, segment(UInt8), chunk
    case screen, block, frame, codeSize, label, extended(UInt8), application
    case subblock(isBlank: Bool)
  }

  private var part: Part
  private var field: [UInt8] = []
  /// The checksum of a blank chunk so far.
  private var sum: UInt32 = 0
  private var isBehindScan = false

  init(_ format: ImageFormat) {
    part =
      switch format {
      case .jpeg: .scan
      case .png: .run(8, isBlank: false, then: .field(8, .chunk))
      case .gif: .field(13, .screen)
      default: .anything
      }
  }

  /// Overwrites metadata in the next piece.
  mutating func apply(to piece: UnsafeMutableRawBufferPointer) {
    var rest = piece[...]
    while let first = rest.first {
      switch part {
      case .anything: return
      case .rest:
        UnsafeMutableRawBufferPointer(rebasing: rest).initializeMemory(as: UInt8.self, repeating: 0)
        return
      case .run(0, _, let then): part = then
      case .run(let left, let isBlank, let then):
        let bytes = UnsafeMutableRawBufferPointer(rebasing: rest.prefix(left))
        if isBlank {
          bytes.initializeMemory(as: UInt8.self, repeating: 0)
          sum = UInt32(libdeflate_crc32(sum, bytes.baseAddress, bytes.count))
        }
        rest = rest.dropFirst(left)
        part = .run(left - bytes.count, isBlank: isBlank, then: then)
      case .scan:
        guard let marker = rest.firstIndex(of: 0xff) else { return }
        rest = rest[(marker + 1)...]
        part = .field(1, .marker)
      case .checksum(let index):
        piece[rest.startIndex] = UInt8(truncatingIfNeeded: sum >> (24 - 8 * index))
        rest = rest.dropFirst()
        part = index < 3 ? .checksum(index + 1) : .field(8, .chunk)
      case .field(let count, let kind):
        field.append(first)
        rest = rest.dropFirst()
        guard field.count == count else { continue }
        part = next(behind: kind)
        field = []
      }
    }
  }

  private mutating func next(behind kind: Field) -> Part {
    switch kind {
    case .marker:
      switch field[0] {
      case 0xff: return .field(1, .marker)
      case 0x00, 0x01, 0xd0...0xd8: return .scan
      case 0xd9: return .rest
      default: return .field(2, .segment(field[0]))
      }
    case .segment(let marker):
      if marker == 0xda { isBehindScan = true }
      let isMetadata = marker == 0xfe || 0xe0...0xef ~= marker
      return .run(
        max(Int(field[0]) << 8 + Int(field[1]) - 2, 0), isBlank: isMetadata && isBehindScan,
        then: .scan)
    case .chunk:
      let length = field[..<4].reduce(0) { $0 << 8 | Int($1) }
      let name = String(decoding: field[4...], as: UTF8.self)
      // No end has content.
      if name == "IEND", length > 0 { return .rest }
      if name == "IEND" { return .run(length + 4, isBlank: false, then: .rest) }
      guard !TrailingDataCheck.plainChunks.contains(name) else {
        return .run(length + 4, isBlank: false, then: .field(8, .chunk))
      }
      sum = UInt32(libdeflate_crc32(0, Array(field[4...]), 4))
      return .run(length, isBlank: true, then: .checksum(0))
    case .screen: return colours(field[10], then: .field(1, .block))
    case .block:
      switch field[0] {
      case 0x2c: return .field(9, .frame)
      case 0x21: return .field(1, .label)
      default: return .rest
      }
    case .frame: return colours(field[8], then: .field(1, .codeSize))
    case .codeSize: return .field(1, .subblock(isBlank: false))
    case .label: return .field(1, .extended(field[0]))
    case .extended(let label):
      guard field[0] > 0 else { return .field(1, .block) }
      if label == 0xff, field[0] == 11 { return .field(11, .application) }
      let isBlank = label != 0xf9
      return .run(Int(field[0]), isBlank: isBlank, then: .field(1, .subblock(isBlank: isBlank)))
    case .application:
      return .field(1, .subblock(isBlank: !field.elementsEqual("NETSCAPE2.0".utf8)))
    case .subblock(let isBlank):
      guard field[0] > 0 else { return .field(1, .block) }
      return .run(
        Int(field[0]), isBlank: isBlank, then: .field(1, .subblock(isBlank: isBlank)))
    }
  }

  private func colours(_ flags: UInt8, then: Part) -> Part {
    .run(flags & 0x80 == 0 ? 0 : 3 << (Int(flags & 7) + 1), isBlank: false, then: then)
  }
}
