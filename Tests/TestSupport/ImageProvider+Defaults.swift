// ImageProvider+Defaults: what a scripted provider need not say.

import Core

extension ImageProvider {
  /// Returns 0.
  public var unattendedCount: Int { 0 }

  /// Returns `nil`.
  public func variantOnDisk(for key: CacheKey, of request: () -> ImageRequest?) -> Variant? { nil }

  /// Uses `cachedVariant`, which counts a look-up.
  public func isCached(_ key: CacheKey) -> Bool { cachedVariant(for: key) != nil }

  /// Returns `nil`.
  public func follow(
    _ request: ImageRequest, for client: LoadClient,
    completion: @escaping @Sendable (Result<ImageDelivery, ImageError>) -> Void
  ) -> (@Sendable () -> Void)? { nil }

  /// Returns a complete image, never a stream.
  public func answer(to request: ImageRequest) async throws(ImageError) -> ImageAnswer {
    .whole(try await variant(for: request))
  }

  /// Does nothing.
  public func keepNamed(_ variant: Variant, of request: ImageRequest) async {}
}
