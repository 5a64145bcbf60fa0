// StoredVariantCoding: a variant as bytes, with the metadata that its file would have.

import Model
import Platform

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
