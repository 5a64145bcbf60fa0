// Upload: the body of a request.

import CMicrohttpd
import Glibc
import Model
import Platform

/// Body bytes, kept where the path wants them and thrown away otherwise.
struct RequestBody: Sendable {
  /// Where a body goes.
  enum Place {
    /// Into an array.
    case bytes
    /// Into a memory file.
    case file
  }

  /// Most bytes of a body that nobody wants; whoever sends more is cut off.
  static let longestUnwanted = 64 << 10
  /// Most bytes of a list; of a longer one the rest is thrown away, so that its sender gets an answer.
  static let longest = 16 << 20
  /// Most bytes beyond what a body may have that are read at all.
  private static let longestExcess = 48 << 20

  /// What was kept.
  private enum Kept: Sendable {
    case nothing
    case bytes([UInt8])
    case file(UploadedFile)
    /// There was no memory for it.
    case lost
  }

  /// Bytes so far, thrown away or not.
  private(set) var count = 0
  /// Most bytes there may be; 0 where none are wanted.
  private var limit = 0
  private var kept = Kept.nothing

  /// Most bytes that are read of a body of which so many are wanted.
  static func mostRead(limit: Int) -> Int { limit > 0 ? limit + longestExcess : longestUnwanted }

  /// Has the bytes that come kept, so many at most.
  mutating func begin(_ place: Place, limit: Int) {
    self.limit = limit
    switch place {
    case .bytes: kept = .bytes([])
    case .file: kept = UploadedFile().map { .file($0) } ?? .lost
    }
  }

  /// Takes the next bytes; `false`: no more are to be read.
  mutating func take(_ more: UnsafeRawBufferPointer) -> Bool {
    count += more.count
    guard limit > 0, count <= limit else {
      kept = .nothing
      return count <= Self.mostRead(limit: limit)
    }
    switch kept {
    case .bytes(var bytes):
      // One owner at a time, or each piece would copy all that came before it.
      kept = .nothing
      bytes.append(contentsOf: more)
      kept = .bytes(bytes)
    case .file(let file): if !file.append(more) { kept = .lost }
    case .nothing, .lost: break
    }
    return true
  }

  /// The bytes of a body that was kept in memory; none where there was no body.
  ///
  /// - Throws: `bodyTooLarge`.
  func bytes() throws(ImageError) -> [UInt8] {
    guard count <= limit else { throw .bodyTooLarge(limit: limit) }
    if case .bytes(let bytes) = kept { return bytes }
    return []
  }

  /// The body that was kept in a file, whole. To be asked once.
  ///
  /// - Throws: `bodyTooLarge`; `unsupportedFormat` where there was no body, `overloaded` where there was no memory for it.
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

/// A memory file that a body is written to.
private final class UploadedFile: @unchecked Sendable {
  // Sound as Sendable: one thread at a time has it, the connection's until the body is whole, then that of the task it is
  // handed to.

  private var file: MemoryFile?

  init?() {
    guard let file = try? MemoryFile(name: "upload") else { return nil }
    self.file = consume file
  }

  /// `false`: there is no memory.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard var file = file.take(), (try? file.append(bytes)) != nil else { return false }
    self.file = consume file
    return true
  }

  /// The file, which nobody can change any more; `nil` the second time.
  func finish() -> FileRegion? {
    guard let file = file.take() else { return nil }
    return try? file.sealed()
  }
}

extension Connection {
  /// The body, which is the caller's alone from here on, and gone with it.
  func takeUpload() -> RequestBody {
    defer { upload = RequestBody() }
    return upload
  }
}

extension RequestContext {
  /// Answers a request whose body is too long to be read to its end before that begins, as whoever waits for leave to send
  /// it expects (RFC 9110, section 10.1.1); `nil`: it will be read.
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

  /// Takes body bytes; `false`: the connection is to be closed. Only operators' are kept, so that no stranger's fill
  /// memory.
  func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // Asked once a body.
    if client.upload.count == 0, let (place, limit) = placeOfBody, isOperator {
      client.upload.begin(place, limit: limit)
      // The header's deadline is not the body's.
      client.watch.deadline =
        Clock.coarseMilliseconds() + handler.answerTimeout
        + limit * 1_000 / handler.configuration.minimumReadRate
    }
    return client.upload.take(bytes)
  }

  /// Where the path wants a body to go, and how long it may be; `nil`: nowhere.
  private var placeOfBody: (RequestBody.Place, limit: Int)? {
    switch (client.target?.route, client.method) {
    case (.prefetches, .post): (.bytes, RequestBody.longest)
    case (.cache, .put):
      (.file, handler.configuration.maximumUpload)
    default: nil
    }
  }
}
