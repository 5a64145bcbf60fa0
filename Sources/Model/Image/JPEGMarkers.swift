// JPEGMarkers: walks over the markers and segments of a JPEG.

/// A walk over a JPEG's markers (ITU-T T.81 | ISO/IEC 10918-1, B.1.1), starting behind the first
/// one, `SOI`.
///
/// The caller knows which markers have a segment (table B.1), and reads or skips it.
public struct JPEGMarkers {
  private var reader: ByteReader
  /// Whether `find` has skipped bytes that belong to no marker and no segment.
  public private(set) var hasStrayBytes = false

  /// Creates a walk over a file.
  public init(_ bytes: UnsafeRawBufferPointer) { reader = ByteReader(bytes, at: 2) }

  /// The offset of the next marker or segment.
  public var position: Int {
    get { reader.position }
    set { reader.position = newValue }
  }

  /// The number of bytes left.
  public var left: Int { reader.left }

  /// Reads the next marker and returns its second byte. Any number of `0xff` fill bytes may precede
  /// it.
  ///
  /// - Returns: `nil`, without moving, if the next bytes are no marker.
  public mutating func next() throws(EndOfBytes) -> UInt8? {
    var ahead = reader
    guard try ahead.byte() == 0xff else { return nil }
    var code = try ahead.byte()
    while code == 0xff { code = try ahead.byte() }
    guard code != 0 else { return nil }
    reader = ahead
    return code
  }

  /// Reads the next marker as `next` does, but skips bytes that are no marker, as decoders do.
  public mutating func find() throws(EndOfBytes) -> UInt8 {
    while true {
      if let marker = try next() { return marker }
      hasStrayBytes = true
      reader.position += 1
    }
  }

  /// The length that the next segment states, including the two bytes of the length itself; `nil`
  /// at the end of the bytes.
  public var segmentLength: Int? { try? reader.number(at: reader.position, width: 2) }

  /// Reads the segment of a marker that has one, and returns its content.
  ///
  /// - Returns: `nil` if the stated length is invalid.
  public mutating func segment() throws(EndOfBytes) -> UnsafeRawBufferPointer? {
    let length = try reader.number(at: reader.position, width: 2)
    guard length >= 2 else { return nil }
    return try UnsafeRawBufferPointer(rebasing: reader.take(length)[2...])
  }

  /// Reads the next marker and its segment; `nil`, without moving, if there is none.
  public mutating func nextSegment() -> (marker: UInt8, content: UnsafeRawBufferPointer)? {
    var ahead = self
    guard let marker = try? ahead.next(), let content = try? ahead.segment() else { return nil }
    self = ahead
    return (marker, content)
  }

  /// Skips entropy-coded data, in which 0xff is followed by 0, and restart markers.
  public mutating func skipScan() throws(EndOfBytes) {
    let bytes = reader.bytes
    var place = reader.position
    while place < bytes.count - 1 {
      let next = bytes[place + 1]
      if bytes[place] == 0xff, next != 0, next != 0xff, !(0xd0...0xd7).contains(next) {
        reader.position = place
        return
      }
      place += 1
    }
    throw EndOfBytes()
  }
}
