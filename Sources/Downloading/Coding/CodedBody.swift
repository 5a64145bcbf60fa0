// CodedBody: a body with a content coding while it is received.

import Glibc
import Model
import Platform

/// Decodes a body while it is received. Keeps the coded bytes if the origin sent digests, which cover
/// them (RFC 9530, section 2; RFC 9110, section 8.1).
final class CodedBody {
  private let coding: ContentCoding
  private let decoder: any ContentDecoding
  private let limit: Int
  private var file: MemoryFile?
  /// What the coded bytes count against. They are returned after the verification, before those of
  /// the decoded body.
  private let lease: ByteLease?
  private var received = 0
  private var decoded = 0
  /// The processor time that decoding took, in nanoseconds.
  private var nanoseconds = 0

  /// The processor time that decoding may take, in nanoseconds: 25 ms, and 50 ns a byte. Decoders need 1 to 5 ns.
  ///
  /// All transfers share a thread. Brotli's block types make streams possible that cost 100 times as much.
  private var allowance: Int { 25_000_000 + 50 * (received + decoded) }

  /// Creates an empty body.
  ///
  /// - Parameters:
  ///   - limit: maximum of the coded bytes.
  ///   - lease: what kept bytes count against; `nil` to keep none.
  init(_ coding: ContentCoding, limit: Int, keepingOn lease: ByteLease?) throws(ImageError) {
    self.coding = coding
    self.limit = limit
    self.lease = lease
    decoder = try coding.makeDecoder()
  }

  /// Receives a piece, and passes what it decodes to to `sink` until that refuses.
  func receive(
    _ bytes: UnsafeRawBufferPointer, to sink: (UnsafeRawBufferPointer) -> IncomingBody.Answer
  ) -> IncomingBody.Answer {
    received += bytes.count
    // A coded body may be without end although it decodes to nothing.
    guard received <= limit else { return .refused(.sourceTooLarge(limit: limit)) }
    if let error = keep(bytes) { return .refused(error) }
    var answer = IncomingBody.Answer.taken
    let start = Self.processorTime()
    var isSound = true
    // In small pieces, so that the time is looked at before much of it is gone.
    var rest = bytes
    while !rest.isEmpty, isSound, case .taken = answer {
      let piece = UnsafeRawBufferPointer(rebasing: rest.prefix(1 << 10))
      rest = UnsafeRawBufferPointer(rebasing: rest.dropFirst(1 << 10))
      isSound = decoder.decode(piece) { output in
        decoded += output.count
        answer = sink(output)
        if case .taken = answer { return true }
        return false
      }
      guard nanoseconds + Self.processorTime() - start <= allowance else {
        return .refused(.tooCostly(reason: "\(coding): decoding takes too long"))
      }
    }
    nanoseconds += Self.processorTime() - start
    return isSound ? answer : .refused(.sourceIncomplete(detail: "\(coding): invalid data"))
  }

  /// The processor time of the calling thread, in nanoseconds. Other threads do not add to it, however busy they are.
  private static func processorTime() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
  }

  private func keep(_ bytes: UnsafeRawBufferPointer) -> ImageError? {
    guard let lease else { return nil }
    guard lease.grow(by: bytes.count) else {
      return .overloaded(queue: "download memory", retryAfter: 1)
    }
    do throws(SystemError) {
      if file == nil { file = try MemoryFile(name: "pictor-coded") }
      try file?.append(bytes)
      return nil
    } catch {
      return .internal(detail: "memory file: \(error)")
    }
  }

  /// Ends the body.
  ///
  /// - Returns: the coded bytes, if they were kept.
  /// - Throws: `sourceIncomplete` if the end of the coded bytes is missing.
  func sealed() throws(ImageError) -> FileRegion? {
    guard received == 0 || decoder.isAtEnd else {
      throw .sourceIncomplete(detail: "\(coding): the end is missing")
    }
    guard let file = file.take() else { return nil }
    do throws(SystemError) {
      return try file.sealed(lease: lease)
    } catch {
      throw .internal(detail: "memory file: \(error)")
    }
  }
}
