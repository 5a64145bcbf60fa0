// Transfer+Outcome: the outcome of a hop, and what a transfer can wait for.

import Model
import Platform

extension Transfer {
  /// The answer to a piece of the body.
  enum BodyAnswer {
    case taken
    /// There is no memory for the body yet: keep the piece back.
    case wait
    /// End the transfer.
    case abort
  }

  /// The outcome of a hop.
  enum Outcome {
    /// Pass the handle to curl for the next hop.
    case nextHop
    /// Retry the hop when the wait is over.
    case retry
    /// The body is complete, and the bytes that the origin sent must be verified against its digests.
    case unverified(Download, sent: FileRegion, BodyDigests)
    /// The load has ended.
    case ended(Result<LoadResult, ImageError>)
  }

  /// Events that a transfer waits for and curl does not report.
  enum Wait {
    case nothing
    /// The first byte of a response, with its deadline.
    case firstByte(until: ContinuousClock.Instant)
    /// The time of the next retry, with the error of the failed hop.
    case retry(at: ContinuousClock.Instant, after: ImageError)
  }
  /// The error of the hop that is to be retried.
  var waitError: ImageError? {
    if case .retry(_, let error) = wait { error } else { nil }
  }
}

extension Result where Failure == ImageError {
  /// The failure.
  var error: ImageError? {
    if case .failure(let error) = self { error } else { nil }
  }
}
