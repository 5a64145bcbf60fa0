// TransferRules, BodyBudget, TransferAlarm: what all transfers of one thread have in common.

import CCurl
import Model

/// What an operator decided, made ready for the transfers.
struct TransferRules: Sendable {
  let configuration: DownloaderConfiguration
  let addresses: AddressPolicy
  let retries: RetryPolicy
  private let lines: [String]
  private let unconditional: HeaderList

  init(_ configuration: DownloaderConfiguration) throws(ImageError) {
    self.configuration = configuration
    addresses = AddressPolicy(allowedNetworks: configuration.allowedNetworks)
    retries = RetryPolicy(
      limit: min(max(configuration.retries, 0), 5), delay: configuration.retryDelay)
    // Nothing here decompresses, so a small body that swells is not asked for; see field notes.
    lines = ["Accept: \(configuration.accept)", "Accept-Encoding: identity"]
    unconditional = try HeaderList(lines)
  }

  /// The header fields of a hop's request.
  ///
  /// Kept validators are those of the last hop's answer, then. An origin takes no notice of them while it redirects
  /// (RFC 9110, section 13.2.1), so the `ETag` goes along on every hop: it is no secret, and hardly any two pictures
  /// share one. A date says nothing about another URL's picture, which may well be older: it goes to the URL that was
  /// asked for and no further (section 15.4 wants validating fields fitted to the new request).
  func headers(
    _ validators: Validators?, isRedirected: Bool
  ) throws(ImageError) -> HeaderList {
    var conditions: [String] = []
    if let etag = validators?.etag, Self.isFieldValue(etag) {
      conditions.append("If-None-Match: \(etag)")
    }
    if let date = validators?.lastModified, !isRedirected, Self.isFieldValue(date) {
      conditions.append("If-Modified-Since: \(date)")
    }
    return conditions.isEmpty ? unconditional : try HeaderList(lines + conditions)
  }

  /// Whether a text can stand in a request and add no line to it. Validators may come from a disk.
  private static func isFieldValue(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { $0 >= 0x20 && $0 != 0x7f }
  }
}

/// Bytes of the bodies being received, all transfers together; of the transfer thread alone.
final class BodyBudget {
  private let limit: Int
  private var used = 0

  init(limit: Int) { self.limit = limit }

  func take(_ count: Int) -> Bool {
    guard used + count <= limit else { return false }
    used += count
    return true
  }

  func giveBack(_ count: Int) { used -= count }
}

/// When some transfer wants to be looked at next, though curl has nothing to report; of the transfer thread alone.
///
/// It only knows the earliest moment of all that were ever set: a transfer that is done with its wait does not take it
/// back. So a busy loop looks through its transfers in vain once in ten seconds, and keeps no list in order.
final class TransferAlarm {
  private(set) var time: ContinuousClock.Instant?

  /// Rings at `instant`, or earlier where it was set so.
  func set(_ instant: ContinuousClock.Instant) { time = min(time ?? instant, instant) }

  /// Whether it is time; it is unset then.
  func rings(at now: ContinuousClock.Instant) -> Bool {
    guard let time, time <= now else { return false }
    self.time = nil
    return true
  }
}
