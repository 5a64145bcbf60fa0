// RequestBody: receives the body of a request.

import CMicrohttpd
import Glibc
import Model
import Platform

/// Receives a request body. Keeps the bytes if the endpoint needs them, and discards them
/// otherwise.
struct RequestBody: Sendable {
  /// Where a body is kept.
  enum Place {
    /// In an array.
    case bytes
    /// In a memory file.
    case file
  }

  /// Maximum length of an unneeded body; the connection of a longer one is closed.
  static let longestUnwanted = 64 << 10
  /// Maximum length of a prefetch list. The rest of a longer one is discarded, so that the client
  /// gets a response.
  static let longest = 16 << 20
  /// Maximum number of bytes read in excess of a body's limit.
  private static let longestExcess = 48 << 20

  /// The bytes kept so far.
  private enum Kept: Sendable {
    case nothing
    case bytes([UInt8])
    case file(UploadedFile)
    /// Memory was exhausted.
    case lost
  }

  /// Bytes received so far, including discarded ones.
  private(set) var count = 0
  /// Maximum length of the body; 0 if it is not needed.
  private var limit = 0
  private var kept = Kept.nothing

  /// Returns the maximum number of bytes read from a body with this limit.
  static func mostRead(limit: Int) -> Int { limit > 0 ? limit + longestExcess : longestUnwanted }

  /// Keeps the following bytes, up to `limit`.
  mutating func begin(_ place: Place, limit: Int) {
    self.limit = limit
    switch place {
    case .bytes: kept = .bytes([])
    case .file: kept = UploadedFile().map { .file($0) } ?? .lost
    }
  }

  /// Takes the next bytes. Returns `false` if reading must stop.
  mutating func take(_ more: UnsafeRawBufferPointer) -> Bool {
    count += more.count
    guard limit > 0, count <= limit else {
      kept = .nothing
      return count <= Self.mostRead(limit: limit)
    }
    switch kept {
    case .bytes(var bytes):
      // Clears `kept` first, so that the array has one owner and `append` does not copy it.
      kept = .nothing
      bytes.append(contentsOf: more)
      kept = .bytes(bytes)
    case .file(let file): if !file.append(more) { kept = .lost }
    case .nothing, .lost: break
    }
    return true
  }

  /// Returns the body kept in memory; empty if there was none.
  ///
  /// - Throws: `bodyTooLarge`.
  func bytes() throws(ImageError) -> [UInt8] {
    guard count <= limit else { throw .bodyTooLarge(limit: limit) }
    if case .bytes(let bytes) = kept { return bytes }
    return []
  }

  /// Returns the complete body kept in a file. Call once.
  ///
  /// - Throws: `bodyTooLarge`, `unsupportedFormat` without a body, `overloaded` if memory is
  ///   exhausted.
  func file() throws(ImageError) -> FileRegion {
    guard count <= limit else { throw .bodyTooLarge(limit: limit) }
    switch kept {
    case .file(let file):
      guard let region = file.finish() else { throw .overloaded(queue: "memory", retryAfter: 1) }
      return region
    case .lost: throw .overloaded(queue: "memory", retryAfter: 1)
    case .nothing, .bytes: throw .unsupportedFormat(detail: "no body")
    }
  }
}

/// A memory file that receives a body.
private final class UploadedFile: @unchecked Sendable {
  // Sound as Sendable: one thread at a time uses it, the connection's until the body is complete,
  // then that of the task that takes it.

  private var file: MemoryFile?

  init?() {
    guard let file = try? MemoryFile(name: "upload") else { return nil }
    self.file = consume file
  }

  /// Appends bytes. Returns `false` if memory is exhausted.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard var file = file.take(), (try? file.append(bytes)) != nil else { return false }
    self.file = consume file
    return true
  }

  /// Returns the sealed file, which can no longer change; `nil` on a second call.
  func finish() -> FileRegion? {
    guard let file = file.take() else { return nil }
    return try? file.sealed()
  }
}

extension Connection {
  /// Moves the body to the caller.
  func takeUpload() -> RequestBody {
    defer { upload = RequestBody() }
    return upload
  }
}

extension RequestContext {
  /// Refuses a request whose `Content-Length` is too long, before its body is read. A client that
  /// sent `Expect: 100-continue` relies on this (RFC 9110, section 10.1.1). Returns `nil` if the
  /// body will be read.
  func refuseBody() -> MHD_Result? {
    guard let field = RequestHandler.header("Content-Length", of: connection),
      let length = Int(String(cString: field)), length > RequestBody.longestUnwanted
    else { return nil }
    let limit = isOperator ? placeOfBody?.limit ?? 0 : 0
    guard length > RequestBody.mostRead(limit: limit) else { return nil }
    client.isActive = true
    client.worker.active.add(1)
    do throws(ImageError) {
      _ = try admitted()
      return refuse(.bodyTooLarge(limit: limit > 0 ? limit : RequestBody.longestUnwanted))
    } catch {
      return refuse(error)
    }
  }

  /// Takes body bytes. Returns `false` if the connection must be closed. Keeps only operators'
  /// bodies, so that other clients cannot fill memory.
  func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // Evaluated once per body.
    if client.upload.count == 0, let (place, limit) = placeOfBody, isOperator {
      client.upload.begin(place, limit: limit)
      // The header's deadline does not apply to the body.
      client.watch.deadline =
        Clock.coarseMilliseconds() + handler.answerTimeout
        + limit * 1_000 / handler.configuration.minimumReadRate
    }
    return client.upload.take(bytes)
  }

  /// Where the endpoint keeps a body, and its maximum length; `nil` if it needs none.
  private var placeOfBody: (RequestBody.Place, limit: Int)? {
    switch (client.target?.route, client.method) {
    case (.prefetches, .post): (.bytes, RequestBody.longest)
    case (.cache, .put):
      (.file, handler.configuration.maximumUpload)
    default: nil
    }
  }
}
