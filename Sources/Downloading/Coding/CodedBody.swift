// CodedBody: a body with a content coding while it is received.

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
    let isSound = decoder.decode(bytes) { decoded in
      answer = sink(decoded)
      if case .taken = answer { return true }
      return false
    }
    return isSound ? answer : .refused(.sourceIncomplete(detail: "\(coding): invalid data"))
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
