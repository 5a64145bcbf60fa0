// BodyVerifier: verifies bodies against their origins' digests, on its own thread.

import Glibc
import Model
import Platform

/// Reads bodies and verifies their digests. Hashing on the transfer thread would stall all
/// transfers.
final class BodyVerifier: Sendable {
  private struct Job {
    let id: DownloadQueue.ID
    let file: FileRegion
    let digests: BodyDigests
  }

  private struct State {
    var jobs = Deque<Job>()
    var isClosed = false
  }

  /// The state shared by the verifier's thread and its callers.
  private final class Shared: Sendable {
    let state = Lock(State())
    let news = Semaphore()

    func run(_ answer: (DownloadQueue.ID, _ mismatch: String?) -> Void) {
      while true {
        news.wait()
        let (job, isClosed): (Job?, Bool) = state.withLock { state in
          (state.isClosed ? nil : state.jobs.popFirst(), state.isClosed)
        }
        if isClosed { return }
        if let job { answer(job.id, BodyVerifier.mismatch(of: job.file, with: job.digests)) }
      }
    }
  }

  private let shared = Shared()
  private let thread: OwnThread

  /// Starts the thread.
  ///
  /// - Parameter answer: called on the verifier's thread with the result of each body; `mismatch`
  ///   is `nil` if all digests match.
  init(
    _ answer: @escaping @Sendable (DownloadQueue.ID, _ mismatch: String?) -> Void
  ) throws(SystemError) {
    thread = try OwnThread(name: "pictor-digest", rank: .work) { [shared] in shared.run(answer) }
  }

  /// Queues a body. There are at most as many as concurrent transfers.
  func verify(_ id: DownloadQueue.ID, file: FileRegion, digests: BodyDigests) {
    shared.state.withLock { $0.jobs.append(Job(id: id, file: file, digests: digests)) }
    shared.news.post()
  }

  /// Discards queued bodies and waits for the thread. May be called more than once.
  func shutDown() {
    shared.state.withLock { $0.isClosed = true }
    shared.news.post()
    thread.join()
  }

  /// Returns a description of the first mismatch, for operators; `nil` if all digests match.
  static func mismatch(of file: FileRegion, with digests: BodyDigests) -> String? {
    for algorithm in Set(digests.claims.map(\.algorithm)) {
      guard let digest = digest(of: file, algorithm) else { return "the body cannot be read back" }
      let wrong = digests.claims.first { $0.algorithm == algorithm && $0.digest != digest }
      if let wrong { return "\(wrong.field): \(algorithm.rawValue) does not match the body" }
    }
    return nil
  }

  private static let pieceLength = 256 << 10

  private static func digest(of file: FileRegion, _ algorithm: BodyDigests.Algorithm) -> [UInt8]? {
    var digest = BodyDigest(algorithm)
    let piece = UnsafeMutableRawBufferPointer.allocate(byteCount: pieceLength, alignment: 16)
    defer { piece.deallocate() }
    var position = 0
    while position < file.count {
      let wanted = min(piece.count, file.count - position)
      let count = pread(file.descriptor, piece.baseAddress, wanted, file.offset + position)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { return nil }
      digest.update(UnsafeRawBufferPointer(rebasing: piece[..<count]))
      position += count
    }
    return digest.finish()
  }
}
