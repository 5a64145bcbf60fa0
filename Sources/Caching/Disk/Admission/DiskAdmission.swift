// DiskAdmission: decides whether a variant may be stored on disk now, or at its second request.

import Model
import Platform

/// Decides whether a variant may be stored on disk.
///
/// Clients may ask for unlimited variants of one image, each once. On disk they would push out what
/// is asked for often. See docs/decisions/020-admission-to-disk.md.
final class DiskAdmission: Sendable {
  private let mode: DiskSettings.Admission
  private let ghosts = Lock(GhostList())

  init(_ mode: DiskSettings.Admission) { self.mode = mode }

  /// Returns whether a variant is stored now. Otherwise its key is remembered, and the next request
  /// for it is the second one.
  ///
  /// - Parameters:
  ///   - demand: who asks for the variant.
  ///   - hasRoom: whether the variants' share has room without an eviction.
  ///   - isStored: whether the tier may have an entry of this key, which the variant replaces.
  func admits(
    _ key: CacheKey, for demand: VariantDemand, hasRoom: @autoclosure () -> Bool,
    isStored: @autoclosure () -> Bool
  ) -> Bool {
    guard demand == .first, mode != .always else { return true }
    if mode == .auto, hasRoom() { return true }
    return isStored() || ghosts.withLock { $0.meet(key.storedHash) }
  }
}
