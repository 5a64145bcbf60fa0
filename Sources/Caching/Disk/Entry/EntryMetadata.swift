// EntryMetadata: the metadata of an entry, stored in its file before the body.

import Model
import Platform

/// The key of an entry and the metadata of its body. The encoding is a list of tagged fields: one
/// byte of tag, four bytes of length, the value.
///
/// Unknown tags are ignored, and an absent field has its old default. So a new field keeps existing
/// files readable.
struct EntryMetadata: Equatable {
  enum Content: Equatable {
    case variant(VariantInfo)
    case source(OriginResponse, Freshness, version: UInt64, generation: Int)
  }

  var key: String
  var content: Content

  // Upper limits for numbers read from a file, because later code adds and multiplies them.
  private static let longestSide = 10_000_000
  fileprivate static let greatestDensity = 1_000_000.0

  /// The format of a description.
  fileprivate static let json = "json"

  // Stored in files: a tag never changes its number or meaning.
  fileprivate enum Tag: UInt8 {
    case key = 1
    /// `format` is a format's name, or `json` for a description.
    case freshness, format, size, frames, density, scaledDownFrom, etag, lastModified
    /// The version of a source, or of a variant's source. Absent if unknown.
    case sourceVersion
    /// The number of the last purge when the load of the source began. Absent if there was none.
    case generation
    /// The quality chosen for `maxbytes`. Absent if not requested.
    case quality
    /// Absent without a watermark.
    case watermarkVersion
    /// 1 for a variant that is not to be recompressed any more. Absent otherwise.
    case isRecompressed
    /// 1 for an uploaded source, and for a variant that is not to be shared. Absent otherwise.
    case isLocal
    /// Absent if there were none.
    case droppedFrames
    case status = 32
    case contentType, cacheControl, expires, date, age, originLastModified, originETag, vary
  }

  /// Returns the encoded fields.
  func encoded() -> [UInt8] {
    var writer = FieldWriter()
    writer.add(Tag.key.rawValue, key)
    switch content {
    case .variant(let info):
      writer.add(Tag.freshness.rawValue, info.freshness)
      writer.add(info.content)
      writer.add(info.etag)
      writer.add(Tag.lastModified.rawValue, info.lastModified.map(HTTPDate.text))
      writer.add(
        Tag.sourceVersion.rawValue, unlessZero: Int(truncatingIfNeeded: info.sourceVersion))
      writer.add(
        Tag.watermarkVersion.rawValue, unlessZero: Int(truncatingIfNeeded: info.watermarkVersion))
      writer.add(Tag.generation.rawValue, unlessZero: info.generation)
      writer.add(Tag.isRecompressed.rawValue, unlessZero: info.isRecompressed ? 1 : 0)
      writer.add(Tag.isLocal.rawValue, unlessZero: info.isLocal ? 1 : 0)
    case .source(let origin, let freshness, let version, let generation):
      writer.add(Tag.freshness.rawValue, freshness)
      writer.add(Tag.sourceVersion.rawValue, unlessZero: Int(truncatingIfNeeded: version))
      writer.add(Tag.generation.rawValue, unlessZero: generation)
      writer.add(Tag.isLocal.rawValue, unlessZero: origin.isUploaded ? 1 : 0)
      writer.add(Tag.status.rawValue, [origin.status])
      writer.add(Tag.contentType.rawValue, origin.contentType)
      writer.add(Tag.cacheControl.rawValue, origin.cacheControl)
      writer.add(Tag.expires.rawValue, origin.expires)
      writer.add(Tag.date.rawValue, origin.date)
      writer.add(Tag.age.rawValue, origin.age)
      writer.add(Tag.originLastModified.rawValue, origin.lastModified)
      writer.add(Tag.originETag.rawValue, origin.etag)
      writer.add(Tag.vary.rawValue, origin.vary)
    }
    return writer.bytes
  }

  init(key: String, content: Content) {
    self.key = key
    self.content = content
  }

  /// Decodes the fields. Returns `nil` if one is missing or invalid.
  init?(kind: EntryKind, decoding bytes: UnsafeRawBufferPointer) {
    var key: String?
    var freshness: Freshness?
    var format: String?
    var size: PixelSize?
    var scaledDownFrom: PixelSize?
    var frames: Int?
    var droppedFrames = 0
    var density: Double?
    var quality: Int?
    var etag: EntityTag?
    var lastModified: UnixTime?
    var version: UInt64 = 0
    var watermarkVersion: UInt64 = 0
    var generation = 0
    var isRecompressed = false
    var isLocal = false
    var origin = OriginResponse(status: 0)
    var reader = FieldReader(bytes)
    while !reader.isAtEnd {
      guard let (number, field) = try? reader.next() else { return nil }
      switch Tag(rawValue: number) {
      case .key: key = field.text
      case .freshness: freshness = field.freshness
      case .format: format = field.text
      case .size: size = field.pixelSize(upTo: Self.longestSide)
      case .frames: frames = field.integer(at: 0).map { min(max($0, 1), Int(Int32.max)) }
      case .droppedFrames: droppedFrames = min(max(field.integer(at: 0) ?? 0, 0), Int(Int32.max))
      case .density: density = field.density
      case .scaledDownFrom: scaledDownFrom = field.pixelSize(upTo: .max)
      case .etag: etag = EntityTag(utf8: field.bytes)
      case .lastModified: lastModified = field.date
      case .sourceVersion: version = UInt64(truncatingIfNeeded: field.integer(at: 0) ?? 0)
      case .watermarkVersion:
        watermarkVersion = UInt64(truncatingIfNeeded: field.integer(at: 0) ?? 0)
      case .quality:
        quality = field.integer(at: 0).map {
          min(max($0, OutputOptions.qualityRange.lowerBound), OutputOptions.qualityRange.upperBound)
        }
      case .generation: generation = field.integer(at: 0) ?? 0
      case .isRecompressed: isRecompressed = field.integer(at: 0) == 1
      case .isLocal: isLocal = field.integer(at: 0) == 1
      case .status: origin.status = field.integer(at: 0) ?? 0
      case .contentType: origin.contentType = field.text
      case .cacheControl: origin.cacheControl = field.text
      case .expires: origin.expires = field.text
      case .date: origin.date = field.text
      case .age: origin.age = field.text
      case .originLastModified: origin.lastModified = field.text
      case .originETag: origin.etag = field.text
      case .vary: origin.vary = field.text
      case nil: break
      }
    }
    guard let key, let freshness else { return nil }
    self.key = key
    switch kind {
    case .variant:
      guard let format, let size, let frames, let density, let etag else { return nil }
      let result: VariantContent
      if format == Self.json {
        result = .sourceDescription
      } else {
        guard let format = ImageFormat(rawValue: format) else { return nil }
        result = .image(
          RenderedImage(
            format: format, size: size, frames: frames, density: density,
            scaledDownFrom: scaledDownFrom, quality: quality, droppedFrames: droppedFrames))
      }
      var info = VariantInfo(
        result, etag: etag, lastModified: lastModified, freshness: freshness,
        sourceVersion: version, watermarkVersion: watermarkVersion, generation: generation)
      info.isRecompressed = isRecompressed
      info.isLocal = isLocal
      content = .variant(info)
    case .source:
      guard (100...999).contains(origin.status) else { return nil }
      origin.isUploaded = isLocal
      content = .source(origin, freshness, version: version, generation: generation)
    }
  }
}

/// Appends tagged fields. Numbers are 64 bits, little-endian.
private struct FieldWriter {
  var bytes: [UInt8] = []

  init() { bytes.reserveCapacity(512) }

  mutating func add(_ tag: UInt8, _ text: String?) {
    guard var text else { return }
    text.withUTF8 { add(tag, UnsafeRawBufferPointer($0)) }
  }

  mutating func add(_ etag: EntityTag) {
    etag.withUTF8 { add(EntryMetadata.Tag.etag.rawValue, UnsafeRawBufferPointer($0)) }
  }

  mutating func add(_ tag: UInt8, _ numbers: [Int]) {
    numbers.map { $0.littleEndian }.withUnsafeBytes { add(tag, $0) }
  }

  /// Appends nothing for 0, because an absent number reads as 0.
  mutating func add(_ tag: UInt8, unlessZero number: Int) {
    if number != 0 { add(tag, [number]) }
  }

  mutating func add(_ tag: UInt8, _ freshness: Freshness) {
    add(
      tag,
      [
        freshness.receivedAt.seconds, freshness.initialAge, freshness.lifetime,
        freshness.isStorable ? 1 : 0, freshness.mayBeStale ? 1 : 0,
        freshness.staleWhileRevalidate, freshness.staleIfError, freshness.isImmutable ? 1 : 0,
        freshness.isStated ? 1 : 0, freshness.clientLifetime, freshness.clientTime,
      ])
  }

  mutating func add(_ content: VariantContent) {
    typealias Tag = EntryMetadata.Tag
    let image = content.image
    // Earlier versions expect a size, frames and a density of a description, too.
    let size = image?.size ?? PixelSize(width: 1, height: 1)
    add(Tag.format.rawValue, image?.format.rawValue ?? EntryMetadata.json)
    add(Tag.size.rawValue, [size.width, size.height])
    add(Tag.frames.rawValue, [image?.frames ?? 1])
    add(Tag.density.rawValue, [Int(bitPattern: UInt((image?.density ?? 1).bitPattern))])
    if let size = image?.scaledDownFrom {
      add(Tag.scaledDownFrom.rawValue, [size.width, size.height])
    }
    add(Tag.quality.rawValue, unlessZero: image?.quality ?? 0)
    add(Tag.droppedFrames.rawValue, unlessZero: image?.droppedFrames ?? 0)
  }

  private mutating func add(_ tag: UInt8, _ value: UnsafeRawBufferPointer) {
    bytes.append(tag)
    withUnsafeBytes(of: UInt32(value.count).littleEndian) { bytes.append(contentsOf: $0) }
    bytes.append(contentsOf: value)
  }
}

/// Reads tagged fields with bounds checks.
private struct FieldReader {
  struct Field {
    let bytes: UnsafeRawBufferPointer

    var text: String { String(decoding: bytes, as: UTF8.self) }

    /// A date in the form that is written; an invalid one is absent.
    var date: UnixTime? { HTTPDate.parseWritten(bytes) ?? HTTPDate.parse(text) }

    func integer(at index: Int) -> Int? {
      guard bytes.count >= (index + 1) * 8 else { return nil }
      return Int(littleEndian: bytes.loadUnaligned(fromByteOffset: index * 8, as: Int.self))
    }

    func pixelSize(upTo longest: Int) -> PixelSize? {
      guard let width = integer(at: 0), let height = integer(at: 1) else { return nil }
      return PixelSize(width: min(max(width, 0), longest), height: min(max(height, 0), longest))
    }

    /// A finite number, at least 0. An invalid value reads as 1.
    var density: Double? {
      integer(at: 0).map { bits in
        let density = Double(bitPattern: UInt64(UInt(bitPattern: bits)))
        return density >= 0 ? min(density, EntryMetadata.greatestDensity) : 1
      }
    }

    var freshness: Freshness? {
      guard let received = integer(at: 0), let age = integer(at: 1), let lifetime = integer(at: 2),
        let isStorable = integer(at: 3)
      else { return nil }
      return Freshness(
        receivedAt: UnixTime(seconds: received), initialAge: age, lifetime: lifetime,
        isStorable: isStorable != 0,
        // Absent in older files. Their origins may have forbidden stale responses, so the default
        // is `false`.
        mayBeStale: integer(at: 4) ?? 0 != 0,
        staleWhileRevalidate: integer(at: 5) ?? 0, staleIfError: integer(at: 6) ?? 0,
        isImmutable: integer(at: 7) ?? 0 != 0,
        // Absent in older files. Their origins may have set another lifetime for clients, so
        // clients revalidate each time.
        isStated: integer(at: 8) ?? 1 != 0, clientLifetime: integer(at: 9) ?? 0,
        clientTime: integer(at: 10) ?? 0)
    }
  }

  private var reader: ByteReader
  var isAtEnd: Bool { reader.isAtEnd }

  init(_ bytes: UnsafeRawBufferPointer) { reader = ByteReader(bytes, order: .little) }

  mutating func next() throws(EndOfBytes) -> (tag: UInt8, field: Field) {
    let tag = try reader.byte()
    let length = try reader.number(4)
    return (tag, Field(bytes: try reader.take(length)))
  }
}
