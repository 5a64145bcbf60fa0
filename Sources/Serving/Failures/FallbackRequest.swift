// FallbackRequest: asks for the fallback image of a request.

import Core

/// The request for a fallback image in place of an image that cannot be had.
struct FallbackRequest: Sendable {
  /// The name in the configuration.
  let name: String
  /// The request. It is plain: its own failure has no fallback.
  let request: ImageRequest

  /// How long a client waits for a fallback after its image has failed.
  static let patience = Duration.seconds(5)

  /// Returns `nil` for a request without a fallback image.
  ///
  /// The fallback has the request's size, effects, format and quality. What the request selects of
  /// its own source, and its watermark, mean nothing for another image.
  init?(for original: ImageRequest) {
    guard case .fallback(let image) = original.options.onFailure else { return nil }
    var transform = original.transform
    transform.selection = Selection()
    transform.sizing.focalPoint = nil
    transform.watermark = nil
    var options = LoadOptions()
    options.priority = original.options.priority
    options.isFreeForm = original.options.isFreeForm
    options.trail = original.options.trail
    options.trace = original.options.trace
    name = image.name
    request = ImageRequest(
      source: image.source, transform: transform, options: options, keyURL: image.keyURL)
  }

  /// Returns the fallback image if it is available without waiting.
  func deliveryAtOnce(by provider: any ImageProvider) -> ImageDelivery? {
    if let variant = provider.cachedVariant(for: request.key) {
      return ImageDelivery(variant: variant, cacheStatus: .hit(.memory), timings: Timings())
    }
    return provider.deliveryAtOnce(for: request)
  }

  /// Returns the fallback image, or `nil` if it cannot be had within `patience`.
  func delivery(
    by provider: any ImageProvider, within patience: Duration = Self.patience
  ) async -> ImageDelivery? {
    if let atOnce = deliveryAtOnce(by: provider) { return atOnce }
    return await withTaskGroup(of: ImageDelivery?.self) { group in
      group.addTask { [request] in try? await provider.variant(for: request) }
      group.addTask {
        // Cancelled as soon as the image is there.
        try? await Task.sleep(for: patience)
        return nil
      }
      let first = await group.next() ?? nil
      group.cancelAll()
      return first
    }
  }
}

/// A fallback image, and the failure that it stands for.
struct FallbackDelivery: Sendable {
  /// The name in the configuration.
  let name: String
  /// The image.
  let delivery: ImageDelivery
  /// The failure of the requested image.
  let error: ImageError
}
