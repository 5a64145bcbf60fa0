// BucketVariants: variants in the bucket, checked like network input.

import Model
import Platform
import Telemetry

/// Variants as objects of a bucket.
///
/// An entry is that of Redis with its expiry, since a bucket has no TTL that readers could rely on.
final class BucketVariants: Sendable {
  /// What a look-up found.
  enum Look {
    /// A variant and its mark, which has to be compared with the purges yet.
    case found(SharedMark, Variant)
    /// An entry that is damaged, expired or of another version.
    case refused
    /// No entry, or no answer.
    case none
  }

  private struct State {
    var count = 0
    var bytes = 0
  }

  /// The most variants, and their bytes, that are being written. They are those of the memory tier's budget.
  private static let countLimit = 256
  private static let byteLimit = 16 << 20
  /// The longest metadata of an entry, and what frames it.
  static let frameLimit = 64 << 10

  let store: S3Bucket
  private let coding: any VariantCoding
  private let state = Lock(State())
  /// Compares checksums: megabytes of them take longer than other tasks should wait.
  private let checking = BlockingThreads(name: "pictor-check", threads: 1)

  init(store: S3Bucket, coding: any VariantCoding) {
    self.store = store
    self.coding = coding
  }

  /// Variants that are being written.
  var waiting: Int { state.withLock { $0.count } }

  /// Whether a body of this length fits into an entry.
  func takes(_ count: Int) -> Bool { count <= store.entryLimit - Self.frameLimit }

  /// Looks for a variant.
  ///
  /// - Parameter name: the name of its entry, after the fleet's prefix.
  func variant(for key: CacheKey, name: String, generation: Int) async -> Look {
    guard store.isReady, case .found(let region) = await store.read(name) else { return .none }
    let look = try? await checking.value { [coding] in
      // A sealed file in memory: it neither changes nor waits for a disk.
      guard let bytes = try? ImageBytes(contentsOf: region) else { return Look.none }
      return Self.read(
        UnsafeRawBufferPointer(start: bytes.baseAddress, count: bytes.count), at: .now
      ) { coding.decode($0, as: key, generation: generation) }
    }
    guard let look else { return .none }
    if case .refused = look { store.counters.refused.add() }
    return look
  }

  /// Reads untrusted bytes.
  static func read(
    _ bytes: UnsafeRawBufferPointer, at now: UnixTime,
    decode: (UnsafeRawBufferPointer) -> Variant?
  ) -> Look {
    guard let entry = SharedEntry.parse(bytes), entry.kind == .dated, entry.content.count > 8
    else { return .refused }
    let expires = entry.content.loadUnaligned(as: Int64.self).littleEndian
    guard now.seconds < expires,
      let variant = decode(UnsafeRawBufferPointer(rebasing: entry.content[8...]))
    else { return .refused }
    return .found(entry.mark, variant)
  }

  /// Returns the bytes of an entry.
  static func entry(_ content: [UInt8], _ mark: SharedMark, expires: UnixTime) -> [UInt8] {
    var dated: [UInt8] = []
    dated.reserveCapacity(8 + content.count)
    withUnsafeBytes(of: Int64(expires.seconds).littleEndian) { dated += $0 }
    dated += content
    return SharedEntry.bytes(mark, dated, as: .dated)
  }

  /// Writes a variant in the background.
  ///
  /// - Parameter finish: called once, unless the result is `false`, with whether the store has confirmed the entry.
  /// - Returns: `false` if the variant is dropped at once.
  func write(
    _ variant: Variant, since mark: SharedMark, name: String,
    finish: @escaping @Sendable (Bool) async -> Void
  ) -> Bool {
    let count = variant.body.count
    let isTaken =
      store.isReady
      && state.withLock { state in
        guard state.count < Self.countLimit,
          state.bytes == 0 || count <= Self.byteLimit - state.bytes
        else { return false }
        state.count += 1
        state.bytes += count
        return true
      }
    guard isTaken else {
      store.counters.dropped.add()
      return false
    }
    // For all machines: it inherits neither priority nor client of the request that made the variant.
    Task.detached { [self] in
      var isWritten = false
      if let content = coding.encode(variant) {
        let life = VariantTier.lifetime(of: variant.info.freshness, at: .now)
        let expires = UnixTime(seconds: UnixTime.now.seconds + life)
        isWritten = await store.write(
          name, Self.entry(content, mark, expires: expires), lifetime: life)
      }
      await finish(isWritten)
      state.withLock { state in
        state.count -= 1
        state.bytes -= count
      }
    }
    return true
  }
}
