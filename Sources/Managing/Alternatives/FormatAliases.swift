// FormatAliases: stores a negotiated variant under its explicit format, too, for redirected clients.

import Model

/// Stores aliases of negotiated variants.
struct FormatAliases: Sendable {
  private let cache: VariantCache
  private let policy: AVIFPolicy
  private let files: FileReader
  private let now: @Sendable () -> UnixTime

  init(
    cache: VariantCache, policy: AVIFPolicy, files: FileReader,
    now: @escaping @Sendable () -> UnixTime
  ) {
    self.cache = cache
    self.policy = policy
    self.files = files
    self.now = now
  }

  /// Stores a negotiated variant under the key with its explicit format, unless a tier has a fresh
  /// entry of that key.
  func store(_ variant: Variant, of request: ImageRequest) async {
    guard let image = variant.info.image else { return }
    let named = request.naming(image.format)
    let entries = await cache.lookUp(named.key)
    let isCached = [entries.memory, entries.disk].contains {
      $0?.freshness.isFresh(at: now()) == true
    }
    guard !isCached, variant.info.freshness.isStorable,
      let alias = await files.copy(of: lasting(variant, of: request), as: named.key)
    else { return }
    cache.store(alias, in: request.options.store, for: request.options.demand())
  }

  /// Returns the fallback's own variant if `variant` is a short-lived copy of it, instead of an
  /// AVIF.
  private func lasting(_ variant: Variant, of request: ImageRequest) -> Variant {
    guard let fallback = policy.fallback(for: request), let own = cache.inMemory(fallback.key),
      own.info.etag == variant.info.etag,
      own.info.freshness.lifetime > variant.info.freshness.lifetime
    else { return variant }
    return own
  }
}
