// AVIFPolicy: decides which requests get a faster format before their AVIF.

import Model
import Platform

/// The policy for responses to clients that negotiate AVIF.
public struct AVIFPolicy: Sendable {
  /// Whether a request without a cached AVIF is answered in a faster format first.
  var isLater: Bool { settings.withLock { $0.defersAVIF } }
  private let settings: Lock<ImagingSettings>
  /// How many AVIFs are encoded in the background at a time. Foreground work needs the other
  /// imaging workers.
  public var atOnce: Int

  /// Creates the policy for a number of imaging workers, at least 1. Half of them stay free for jobs
  /// that a request waits for. All copies share the settings, so that a reload reaches them.
  public init(_ settings: ImagingSettings = ImagingSettings(), workers: Int = 2) {
    self.settings = Lock(settings)
    atOnce = workers / 2
  }

  /// Replaces the settings.
  func apply(_ wanted: ImagingSettings) { settings.withLock { $0 = wanted } }

  /// Returns the fallback request for a request that would wait for an AVIF, or `nil` if no
  /// fallback applies.
  ///
  /// The fallback equals the request of a client that does not accept AVIF, so both share one
  /// variant. There is no fallback if the request may not use the disk tier: the AVIF would need a
  /// second download, or could not be stored.
  func fallback(for request: ImageRequest) -> ImageRequest? {
    guard isLater, !request.options.awaitsAVIF, !request.options.isRevalidation,
      request.options.store.contains(.disk)
    else { return nil }
    return request.withoutAVIF
  }

  /// Returns the fallback request whose variant may replace the AVIF that a background request has
  /// rendered, or `nil` if the AVIF stays in any case.
  func replaceableFallback(for request: ImageRequest) -> ImageRequest? {
    guard isLater, request.options.awaitsAVIF || request.options.isRevalidation,
      // With `maxBytes`, both formats fill the same budget, so a smaller file is not better.
      request.transform.output.maxBytes == nil
    else { return nil }
    return request.withoutAVIF
  }
}

extension ImageRequest {
  /// The request of a client that does not accept AVIF, or `nil` if AVIF is not the preferred
  /// format.
  fileprivate var withoutAVIF: ImageRequest? {
    guard transform.leavesFormatOpen, transform.output.accepted.first == .avif else { return nil }
    return accepting(Array(transform.output.accepted.dropFirst()))
  }
}
