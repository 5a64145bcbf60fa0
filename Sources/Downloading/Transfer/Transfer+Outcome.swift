// Transfer+Outcome: what a transfer comes to after a hop, and what it waits for.

import Model
import Platform

extension Transfer {
  /// A body that came whole.
  static func seal(_ body: consuming MemoryFile) throws(ImageError) -> FileRegion {
    do throws(SystemError) {
      return try body.sealed()
    } catch {
      throw .internal(detail: "memory file: \(error)")
    }
  }

  /// What is to be done after a hop.
  enum Outcome {
    /// Go on: hand the handle to curl once more.
    case nextHop
    /// The same hop once more, when the wait is over.
    case retry
    /// The body is here, and is to be held against what its origin says of it.
    case unverified(Download, BodyDigests)
    /// The load has ended.
    case ended(Result<LoadResult, ImageError>)
  }

  /// What a transfer waits for besides what curl reports.
  enum Wait {
    case nothing
    /// The first byte of an answer, which is to be here by then.
    case firstByte(until: ContinuousClock.Instant)
    /// The moment to try a hop again, and what it failed with.
    case retry(at: ContinuousClock.Instant, after: ImageError)
  }
}
