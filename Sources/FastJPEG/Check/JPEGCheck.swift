// JPEGCheck: checks that a JPEG's entropy-coded data is complete and valid.

import Core

/// Walks over a JPEG's segments and the codes of its scans (ITU-T T.81, annexes B, F and G) without
/// computing pixels.
///
/// libjpeg also warns of harmless things, and libvips does not report what libjpeg finds after the
/// last row. This check reports only lost or invented pixels:
/// - A code that the table lacks, a number with too many bits, a coefficient past the last
///   position.
/// - Data that ends before or after its blocks, in a scan or a restart interval.
/// - A refinement of coefficients that were not sent, a component without a scan, a file without
///   its end marker.
///
/// Extra bytes between segments, after the end marker, and before a marker in a scan
/// (`JPEGRestarts`) are harmless.
public struct JPEGCheck {
  private let bytes: UnsafeRawBufferPointer
  private var markers: JPEGMarkers
  private var tables = JPEGCodeTables()
  private var frame: JPEGScanFrame?
  private var quantizers = JPEGQuantizers()
  private var restartInterval = 0
  /// Whether a scan has bytes that belong to no block.
  private var hasStrayCodes = false
  /// How much of each side is decoded, in eighths; `nil` if only codes are checked.
  private let eighths: Int?

  private init(_ bytes: UnsafeRawBufferPointer, eighths: Int? = nil) {
    self.bytes = bytes
    self.eighths = eighths
    markers = JPEGMarkers(bytes)
  }

  /// Checks a JPEG. Returns `unknown` for arithmetic coding, for omitted tables, and for files that
  /// libjpeg rejects.
  public static func verdict(on bytes: UnsafeRawBufferPointer) -> JPEGVerdict {
    var check = JPEGCheck(bytes)
    return check.run()
  }

  /// Checks a JPEG, and keeps the coefficients of a progressive one that a reduced image shows.
  ///
  /// - Returns: The frame; `nil` if the JPEG is damaged, lacks a scan, or is of another kind.
  static func coefficients(of bytes: UnsafeRawBufferPointer, eighths: Int) -> JPEGScanFrame? {
    var check = JPEGCheck(bytes, eighths: eighths)
    guard check.run() == .whole, let frame = check.frame, frame.isRefined else { return nil }
    return frame
  }

  private mutating func run() -> JPEGVerdict {
    while true {
      guard let marker = try? markers.find() else {
        return .damaged(.truncated, "a JPEG without its end")
      }
      switch marker {
      case 0xd9: return judgeFrame()
      // Restart markers outside a scan, and markers without content (T.81, table B.1).
      case 0x01, 0xd0...0xd8: continue
      default: break
      }
      guard let segment = try? markers.segment() else {
        return .damaged(.truncated, "a JPEG's segment ends early")
      }
      switch marker {
      case 0xc0, 0xc1, 0xc2:
        guard frame == nil,
          let read = JPEGScanFrame(segment, isProgressive: marker == 0xc2)
        else { return .unknown }
        if let eighths, !read.keepCoefficients(eighths: eighths) { return .unknown }
        frame = read
      case 0xc4:
        guard tables.define(segment) else { return .damaged(.error, "a JPEG's code tables") }
      case 0xc3, 0xc5...0xcf: return .unknown
      case 0xdb: _ = quantizers.define(segment)
      case 0xee where eighths != nil && segment.starts(with: "Adobe".utf8):
        // The Adobe colour transform: 1 is YCbCr.
        guard segment.count >= 12, segment[11] == 1 else { return .unknown }
      case 0xdd:
        guard segment.count == 2 else { return .unknown }
        restartInterval = Int(segment[0]) << 8 | Int(segment[1])
      case 0xda:
        let verdict = readScan(segment)
        guard verdict == .whole else { return verdict }
      default: break
      }
    }
  }

  private mutating func readScan(_ segment: UnsafeRawBufferPointer) -> JPEGVerdict {
    guard let frame else { return .unknown }
    guard let header = JPEGScanHeader(segment, of: frame) else { return .unknown }
    if eighths != nil {
      for member in header.members where frame.components[member.component].quantization == nil {
        guard let table = quantizers.factors(frame.components[member.component].quantizer) else {
          return .unknown
        }
        frame.components[member.component].quantization = table
      }
    }
    if let fault = frame.begin(header) { return .damaged(.warning, fault) }
    guard var bits = JPEGBits(bytes, at: markers.position) else { return .unknown }
    let scan = JPEGScan(
      header: header, restartInterval: restartInterval,
      quantizers: header.members.map {
        quantizers.ofMean(frame.components[$0.component].quantizer)
      })
    let verdict = scan.read(&bits, frame: frame, tables: &tables)
    guard verdict == .whole else { return verdict }
    guard let end = bits.end else {
      return bits.isAtFileEnd
        ? .damaged(.truncated, "a JPEG's scan ends with the file")
        : .damaged(.warning, "a JPEG's scan continues after its last block")
    }
    markers.position = end
    hasStrayCodes = hasStrayCodes || bits.hasMoved
    return .whole
  }

  /// Returns the verdict at the end marker: whether all declared data was received.
  private func judgeFrame() -> JPEGVerdict {
    guard let frame else { return .unknown }
    guard frame.isComplete else { return .damaged(.warning, "a JPEG lacks a component") }
    // Stray bytes between segments may be the rest of a damaged scan.
    return frame.isRefined || !(markers.hasStrayBytes || hasStrayCodes)
      ? .whole : .damaged(.warning, "a JPEG lacks a scan")
  }
}

/// The verdict on a JPEG's entropy-coded data.
public enum JPEGVerdict: Equatable, Sendable {
  /// All pixels are present, as far as the codes can tell.
  case whole
  /// The check does not support this kind of file; libjpeg decides.
  case unknown
  /// Pixels are lost or invented; holds the mildest level of `FailOn` that rejects this, and a
  /// description.
  case damaged(FailOn, String)
}
