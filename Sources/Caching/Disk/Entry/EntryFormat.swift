// EntryFormat: the bytes of an entry, in its file and for other machines.

import CDeflate
import Core

/// The header: forty bytes, little-endian. The fields and their lengths in bytes, in order:
///
/// - magic (8), format version (2), kind (1), zero (1)
/// - length of the metadata (4), length of the body (8)
/// - CRC-32 of everything between header and body (4), CRC-32 of the body (4)
/// - offset of the body (4), CRC-32 of the 36 bytes before (4)
///
/// The metadata follows, then zeros up to the body, which starts at a multiple of 64.
struct EntryHeader: Equatable {
  static let byteCount = 40
  static let version: UInt16 = 1
  private static let magic: UInt64 = 0x0a45_4843_5443_4950  // "PICTCHE\n"
  private static let bodyAlignment = 64
  /// Maximum length of the metadata in bytes: enough for the longest URL and all response headers.
  static let maximumMetadataLength = 1 << 20

  var kind: EntryKind
  var metadataLength: Int
  var metadataChecksum: UInt32
  var bodyLength: Int
  var bodyChecksum: UInt32
  /// The offset of the body in the file.
  var bodyOffset: Int

  /// The length of the whole file.
  var fileLength: Int { bodyOffset + bodyLength }

  /// Returns the offset of the body after metadata of this length.
  static func bodyOffset(metadataLength: Int) -> Int {
    (byteCount + metadataLength + bodyAlignment - 1) / bodyAlignment * bodyAlignment
  }

  /// Returns everything before the body: header, metadata and padding.
  static func prefix(
    kind: EntryKind, metadata: [UInt8], bodyLength: Int, bodyChecksum: UInt32
  ) -> [UInt8] {
    let end = byteCount + metadata.count
    let bodyOffset = bodyOffset(metadataLength: metadata.count)
    var bytes = [UInt8](repeating: 0, count: bodyOffset)
    bytes.replaceSubrange(byteCount..<end, with: metadata)
    bytes.withUnsafeMutableBytes { bytes in
      func put<Number: FixedWidthInteger>(_ number: Number, at offset: Int) {
        bytes.storeBytes(of: number.littleEndian, toByteOffset: offset, as: Number.self)
      }
      put(magic, at: 0)
      put(version, at: 8)
      put(kind.rawValue, at: 10)
      put(UInt32(metadata.count), at: 12)
      put(UInt64(bodyLength), at: 16)
      put(checksum(UnsafeRawBufferPointer(rebasing: bytes[byteCount...])), at: 24)
      put(bodyChecksum, at: 28)
      put(UInt32(bodyOffset), at: 32)
      put(checksum(UnsafeRawBufferPointer(rebasing: bytes[..<36])), at: 36)
    }
    return bytes
  }

  /// Decodes a header. Returns `nil` for another version and for damage.
  init?(decoding bytes: UnsafeRawBufferPointer) {
    guard bytes.count >= Self.byteCount else { return nil }
    func get<Number: FixedWidthInteger>(_ type: Number.Type, at offset: Int) -> Number {
      Number(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: type))
    }
    guard get(UInt64.self, at: 0) == Self.magic, get(UInt16.self, at: 8) == Self.version,
      get(UInt32.self, at: 36)
        == Self.checksum(UnsafeRawBufferPointer(rebasing: bytes[..<36])),
      let kind = EntryKind(rawValue: get(UInt8.self, at: 10)),
      let bodyLength = Int(exactly: get(UInt64.self, at: 16)), bodyLength <= Int.max / 2
    else { return nil }
    self.kind = kind
    self.bodyLength = bodyLength
    metadataLength = Int(get(UInt32.self, at: 12))
    metadataChecksum = get(UInt32.self, at: 24)
    bodyChecksum = get(UInt32.self, at: 28)
    bodyOffset = Int(get(UInt32.self, at: 32))
    guard metadataLength <= Self.maximumMetadataLength,
      Self.byteCount + metadataLength <= bodyOffset,
      bodyOffset - Self.byteCount - metadataLength < Self.bodyAlignment
    else { return nil }
  }

  /// Returns the metadata, or `nil` if it is damaged. `beginning` holds the file at least up to the
  /// body.
  ///
  /// - Parameter isKnown: whether the checksum was verified before.
  func metadata(in beginning: UnsafeRawBufferPointer, isKnown: Bool = false) -> EntryMetadata? {
    let rest = UnsafeRawBufferPointer(rebasing: beginning[Self.byteCount..<bodyOffset])
    guard isKnown || Self.checksum(rest) == metadataChecksum else { return nil }
    let fields = UnsafeRawBufferPointer(rebasing: rest[..<metadataLength])
    return EntryMetadata(kind: kind, decoding: fields)
  }

  /// Returns the CRC-32 of `bytes`, continued from `earlier`.
  static func checksum(_ bytes: UnsafeRawBufferPointer, after earlier: UInt32 = 0) -> UInt32 {
    // libdeflate restarts the checksum for a null pointer.
    guard let start = bytes.baseAddress else { return earlier }
    return libdeflate_crc32(earlier, start, bytes.count)
  }
}

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
    case targetedControl
  }

  /// The fields of a response that are stored as texts.
  private static let texts:
    [(tag: Tag, field: WritableKeyPath<OriginResponse, String?> & Sendable)] =
      [
        (.contentType, \.contentType), (.cacheControl, \.cacheControl),
        (.targetedControl, \.targetedControl), (.expires, \.expires), (.date, \.date),
        (.age, \.age),
        (.originLastModified, \.lastModified), (.originETag, \.etag), (.vary, \.vary),
      ]
}

extension EntryMetadata {
  /// Returns the encoded fields.
  func encoded() -> [UInt8] {
    var writer = FieldWriter()
    writer.add(.key, key)
    switch content {
    case .variant(let info):
      writer.add(.freshness, info.freshness)
      writer.add(info.content)
      writer.add(info.etag)
      writer.add(.lastModified, info.lastModified.map(HTTPDate.text))
      writer.add(.sourceVersion, unlessZero: Int(truncatingIfNeeded: info.sourceVersion))
      writer.add(.watermarkVersion, unlessZero: Int(truncatingIfNeeded: info.watermarkVersion))
      writer.add(.generation, unlessZero: info.generation)
      writer.add(.isRecompressed, unlessZero: info.isRecompressed ? 1 : 0)
      writer.add(.isLocal, unlessZero: info.isLocal ? 1 : 0)
    case .source(let origin, let freshness, let version, let generation):
      writer.add(.freshness, freshness)
      writer.add(.sourceVersion, unlessZero: Int(truncatingIfNeeded: version))
      writer.add(.generation, unlessZero: generation)
      writer.add(.isLocal, unlessZero: origin.isUploaded ? 1 : 0)
      writer.add(.status, [origin.status])
      for (tag, field) in Self.texts { writer.add(tag, origin[keyPath: field]) }
    }
    return writer.bytes
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
      case let tag?:
        if let text = Self.texts.first(where: { $0.tag == tag }) {
          origin[keyPath: text.field] = field.text
        }
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

  mutating func add(_ tag: EntryMetadata.Tag, _ text: String?) {
    guard var text else { return }
    text.withUTF8 { add(tag, UnsafeRawBufferPointer($0)) }
  }

  mutating func add(_ etag: EntityTag) {
    etag.withUTF8 { add(.etag, UnsafeRawBufferPointer($0)) }
  }

  mutating func add(_ tag: EntryMetadata.Tag, _ numbers: [Int]) {
    numbers.map { $0.littleEndian }.withUnsafeBytes { add(tag, $0) }
  }

  /// Appends nothing for 0, because an absent number reads as 0.
  mutating func add(_ tag: EntryMetadata.Tag, unlessZero number: Int) {
    if number != 0 { add(tag, [number]) }
  }

  mutating func add(_ tag: EntryMetadata.Tag, _ freshness: Freshness) {
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
    let image = content.image
    // Earlier versions expect a size, frames and a density of a description, too.
    let size = image?.size ?? PixelSize(width: 1, height: 1)
    add(.format, image?.format.rawValue ?? EntryMetadata.json)
    add(.size, [size.width, size.height])
    add(.frames, [image?.frames ?? 1])
    add(.density, [Int(bitPattern: UInt((image?.density ?? 1).bitPattern))])
    if let size = image?.scaledDownFrom {
      add(.scaledDownFrom, [size.width, size.height])
    }
    add(.quality, unlessZero: image?.quality ?? 0)
    add(.droppedFrames, unlessZero: image?.droppedFrames ?? 0)
  }

  private mutating func add(_ tag: EntryMetadata.Tag, _ value: UnsafeRawBufferPointer) {
    bytes.append(tag.rawValue)
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

extension EntryMetadata {
  /// The longest entity tag of another machine's entry, in bytes. Each hit sends it.
  static let longestSharedTag = 256

  /// Returns the metadata within this machine's bounds: the shared tier is untrusted input. `nil`
  /// if a variant's entity tag is too long; a source's only saves a transfer, so it is dropped.
  ///
  /// - Parameter longest: the longest lifetime that this machine would give an entry, in seconds.
  func bounded(to longest: Int, at now: UnixTime) -> EntryMetadata? {
    var result = self
    switch content {
    case .variant(var info):
      guard info.etag.heldBytes <= Self.longestSharedTag else { return nil }
      info.freshness = info.freshness.bounded(to: longest, at: now)
      result.content = .variant(info)
    case .source(var origin, let freshness, let version, let generation):
      if origin.etag?.utf8.count ?? 0 > Self.longestSharedTag { origin.etag = nil }
      result.content = .source(
        origin, freshness.bounded(to: longest, at: now), version: version, generation: generation)
    }
    return result
  }
}

extension Freshness {
  /// The freshness with no time of the future, and no lifetime beyond `longest` seconds. Stale
  /// times come from origins, too, so only the bound of the settings holds for them.
  fileprivate func bounded(to longest: Int, at now: UnixTime) -> Freshness {
    let longestStale = FreshnessSettings.allowed.upperBound.flooredSeconds
    return Freshness(
      receivedAt: min(receivedAt, now), initialAge: initialAge, lifetime: min(lifetime, longest),
      isStorable: isStorable, mayBeStale: mayBeStale,
      staleWhileRevalidate: min(staleWhileRevalidate, longestStale),
      staleIfError: min(staleIfError, longestStale), isImmutable: isImmutable, isStated: isStated,
      clientLifetime: min(clientLifetime, longest), clientTime: clientTime)
  }
}

/// The coding of variants for the shared tier: four bytes with the length of the metadata,
/// little-endian, the metadata as in a file, the body.
public struct StoredVariantCoding: VariantCoding {
  private let memory: ByteBudget
  private let longestLifetime: Int

  /// - Parameters:
  ///   - memory: what decoded bodies count against.
  ///   - longestLifetime: the longest lifetime of a decoded variant, in seconds.
  public init(
    memory: ByteBudget, longestLifetime: Int = FreshnessConfiguration().longestLifetime
  ) {
    self.memory = memory
    self.longestLifetime = longestLifetime
  }

  /// See `VariantCoding`.
  public func encode(_ variant: Variant) -> [UInt8]? {
    guard case .memory(let body) = variant.body else { return nil }
    let metadata = EntryMetadata(key: variant.key.text, content: .variant(variant.info)).encoded()
    var bytes: [UInt8] = []
    bytes.reserveCapacity(4 + metadata.count + body.count)
    withUnsafeBytes(of: UInt32(metadata.count).littleEndian) { bytes += $0 }
    bytes += metadata
    body.withUnsafeBytes { bytes += $0 }
    return bytes
  }

  /// See `VariantCoding`.
  public func decode(
    _ bytes: UnsafeRawBufferPointer, as key: CacheKey, generation: Int
  ) -> Variant? {
    var reader = ByteReader(bytes, order: .little)
    guard let length = try? reader.number(4), let head = try? reader.take(length),
      let metadata = EntryMetadata(kind: .variant, decoding: head)?
        .bounded(to: longestLifetime, at: .now), metadata.key == key.text,
      case .variant(var info) = metadata.content
    else { return nil }
    let body = UnsafeRawBufferPointer(rebasing: bytes[reader.position...])
    guard !body.isEmpty else { return nil }
    if let image = info.image, FormatSigns.format(of: body) != image.format { return nil }
    guard let lease = memory.lease(body.count) else { return nil }
    info.generation = generation
    return Variant(
      key: key, info: info, body: .memory(ImageBytes(copying: body, lease: lease)))
  }
}
