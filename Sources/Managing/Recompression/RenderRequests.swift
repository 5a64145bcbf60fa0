// RenderRequests: remembers how variants were rendered, for those that are rendered again.

import Model
import Platform

/// The requests of variants in memory that are rendered again once they are popular. Bounded: the oldest is
/// forgotten, and its variant stays as it is.
final class RenderRequests: Sendable {
  /// The maximum number of requests; each takes about a kilobyte.
  static let limit = 2_048

  private let policy: RecompressionPolicy
  private let table = Lock(BoundedTable<CacheKey, ImageRequest>(limit: limit))

  init(policy: RecompressionPolicy) { self.policy = policy }

  /// Whether the request of a variant may have to be remembered.
  func mayNote(_ variant: Variant) -> Bool {
    policy.needsSource(variant) && !variant.info.isRecompressed
  }

  /// Remembers the request of a variant that is rendered again, and of no other.
  func note(_ request: ImageRequest, of variant: Variant) {
    let transform = request.transform
    guard mayNote(variant), let format = variant.info.image?.format,
      policy.transform(transform, for: format) != nil,
      // A watermark is another source, and `maxbytes` fills its limit with any effort.
      transform.watermark == nil, transform.output.maxBytes == nil
    else { return }
    table.withLock { $0.setNewest(request, for: variant.key) }
  }

  /// Returns the request of a variant; `nil` if it is not remembered.
  func request(of key: CacheKey) -> ImageRequest? { table.withLock { $0[key] } }

  /// Forgets the request of a variant that is not rendered again any more.
  func forget(_ key: CacheKey) { table.withLock { $0[key] = nil } }
}
