// VariantStorage: where the bytes of a variant are until they are sent.

/// Decides where the bytes of a variant are from its rendering to its last response: in memory, or
/// in a file without a name.
///
/// A slow reader holds what it reads. So bytes in memory count against a budget, whether the memory
/// tier still has them or not, and what does not fit is sent from a file.
public struct VariantStorage: Sendable {
  /// The bytes of all variants in memory.
  public let memory: ByteBudget
  /// The files of variants that are not in memory; `nil` without a disk.
  public let files: UnlinkedFiles?
  /// The maximum size of a variant in memory, in bytes.
  public let maximumInMemory: Int

  /// Variants up to this size, in bytes, go to memory as long as it has room, even if the memory
  /// tier keeps none: most are sent at once.
  public static let alwaysInMemory = 1 << 20

  /// Creates a storage.
  public init(memory: ByteBudget, files: UnlinkedFiles?, maximumInMemory: Int) {
    self.memory = memory
    self.files = files
    self.maximumInMemory = maximumInMemory
  }

  /// A storage that takes all variants into memory.
  public static var unlimited: VariantStorage {
    VariantStorage(memory: .unlimited, files: nil, maximumInMemory: .max)
  }

  /// Returns the body of a variant. Blocks on the disk.
  ///
  /// - Parameter region: a worker's result, which is copied.
  /// - Throws: `overloaded` if neither memory nor the disk has room, `internal` if the file cannot
  ///   be read.
  public func body(of region: FileRegion) throws(ImageError) -> Variant.Body {
    if region.count <= maximumInMemory, let lease = memory.lease(region.count) {
      return .memory(try bytes(of: region, lease: lease))
    }
    if let file = inFile(region) { return .file(file) }
    // Without a file, a large variant may take what other variants leave.
    guard let lease = memory.lease(region.count) else {
      throw .overloaded(queue: "memory", retryAfter: 1)
    }
    return .memory(try bytes(of: region, lease: lease))
  }

  /// Returns a copy of a region in a file without a name; `nil` if there is no room. Blocks on the
  /// disk.
  public func inFile(_ region: FileRegion) -> FileRegion? {
    try? files?.copy(region)
  }

  private func bytes(of region: FileRegion, lease: ByteLease) throws(ImageError) -> ImageBytes {
    do throws(SystemError) {
      return try ImageBytes(contentsOf: region, mayMap: false, lease: lease)
    } catch {
      throw .internal(detail: "cannot read a result of \(region.count) bytes: \(error)")
    }
  }
}
