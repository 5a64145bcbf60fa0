// BodyVerifier: holds bodies against their origins' digests, on a thread of its own.

import Glibc
import Model
import Platform

/// Reads a body and makes its digests. SHA-256 takes some milliseconds a MiB, for which the transfer thread would leave all
/// other transfers alone.
final class BodyVerifier: Sendable {
  private struct Job {
    let id: DownloadQueue.ID
    let file: FileRegion
    let digests: BodyDigests
  }

  private struct State {
    var jobs: [Job] = []
    var isClosed = false
  }

  /// What its thread shares with whoever hands in work.
  private final class Shared: Sendable {
    let state = Lock(State())
    let news = Semaphore()

    func run(_ answer: (DownloadQueue.ID, _ mismatch: String?) -> Void) {
      while true {
        news.wait()
        let (job, isClosed): (Job?, Bool) = state.withLock { state in
          (state.isClosed || state.jobs.isEmpty ? nil : state.jobs.removeFirst(), state.isClosed)
        }
        if isClosed { return }
        if let job { answer(job.id, BodyVerifier.mismatch(of: job.file, with: job.digests)) }
      }
    }
  }

  private let shared = Shared()
  private let thread: OwnThread

  /// - Parameter answer: is told on the verifier's thread what came of each body; `nil`: it is what its origin sent.
  init(
    _ answer: @escaping @Sendable (DownloadQueue.ID, _ mismatch: String?) -> Void
  ) throws(SystemError) {
    thread = try OwnThread(name: "pictor-digest", rank: .work) { [shared] in shared.run(answer) }
  }

  /// Hands in a body. There are no more of them than transfers at once.
  func verify(_ id: DownloadQueue.ID, _ file: FileRegion, _ digests: BodyDigests) {
    shared.state.withLock { $0.jobs.append(Job(id: id, file: file, digests: digests)) }
    shared.news.post()
  }

  /// Gives up what is not done and waits for the thread. May be called more than once.
  func shutDown() {
    shared.state.withLock { $0.isClosed = true }
    shared.news.post()
    thread.join()
  }

  /// What of the digests does not fit the body, for operators; `nil`: all fit.
  static func mismatch(of file: FileRegion, with digests: BodyDigests) -> String? {
    for algorithm in Set(digests.claims.map(\.algorithm)) {
      guard let digest = digest(of: file, algorithm) else { return "the body cannot be read back" }
      let wrong = digests.claims.first { $0.algorithm == algorithm && $0.digest != digest }
      if let wrong { return "\(wrong.field): \(algorithm.rawValue) is of other bytes" }
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
