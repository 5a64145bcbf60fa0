// RequestBody: receives the body of a request.

import CMicrohttpd
import Core
import Glibc

/// Receives a request body. Keeps the bytes if the endpoint needs them, and discards them
/// otherwise.
struct RequestBody: Sendable {
  /// Maximum length of an unneeded body, in bytes. A longer one closes the connection.
  static let maximumDiscarded = 64 << 10
  /// Maximum number of bytes read in excess of a body's limit, so that the client gets a response.
  private static let maximumExcess = 48 << 20

  /// The bytes kept so far.
  private enum Storage: Sendable {
    case nothing
    case bytes([UInt8])
    case file(BodyFile)
    case form(FormFile)
    case failed
  }

  /// Bytes received so far, including discarded ones.
  private(set) var count = 0
  /// Maximum length of the body; 0 if it is not needed.
  private var limit = 0
  /// The configuration key of the limit, if there is one.
  private var key: String?
  private var storage = Storage.nothing

  /// Returns the maximum number of bytes read from a body with this limit.
  static func maximumRead(limit: Int) -> Int {
    limit > 0 ? limit + maximumExcess : maximumDiscarded
  }

  /// Keeps the following bytes by the policy. Bytes in a file count against `memory`.
  ///
  /// - Parameter form: reads the file of an HTML form; `nil`: the body is the file.
  mutating func begin(_ policy: BodyPolicy, memory: ByteBudget, form: OpaquePointer? = nil) {
    limit = policy.limit
    key = policy.key
    switch policy {
    case .discard: storage = .nothing
    case .memory: storage = .bytes([])
    case .file:
      let file = BodyFile(memory)
      storage = file.map { .file($0) } ?? .failed
      if let file, let form { storage = .form(FormFile(form, into: file)) }
    }
  }

  /// Takes the next bytes. Returns `false` if reading must stop.
  mutating func take(_ more: UnsafeRawBufferPointer) -> Bool {
    count += more.count
    guard limit > 0, count <= limit else {
      storage = .nothing
      return count <= Self.maximumRead(limit: limit)
    }
    switch storage {
    case .bytes(var bytes):
      // Clears `storage` first, so that the array has one owner and `append` does not copy it.
      storage = .nothing
      bytes.append(contentsOf: more)
      storage = .bytes(bytes)
    case .file(let file): if !file.append(more) { storage = .failed }
    case .form(let form): if !form.take(more) { storage = .failed }
    case .nothing, .failed: break
    }
    return true
  }

  /// Returns the body kept in memory; empty if there was none.
  ///
  /// - Throws: `bodyTooLarge`.
  func bytes() throws(ImageError) -> [UInt8] {
    guard count <= limit else { throw .bodyTooLarge(limit: limit, key: key) }
    if case .bytes(let bytes) = storage { return bytes }
    return []
  }

  /// Returns the complete body kept in a file. Call once.
  ///
  /// - Throws: `bodyTooLarge`, `unsupportedFormat` without a body or for a form without a file,
  ///   `overloaded` if memory is exhausted.
  func file() throws(ImageError) -> FileRegion {
    guard count <= limit else { throw .bodyTooLarge(limit: limit, key: key) }
    var storage = storage
    if case .form(let form) = storage { storage = .file(try form.end()) }
    switch storage {
    case .file(let file):
      guard let region = file.finish() else {
        throw .overloaded(queue: "download memory", retryAfter: 1)
      }
      return region
    case .failed: throw .overloaded(queue: "download memory", retryAfter: 1)
    case .nothing, .bytes, .form: throw .unsupportedFormat(detail: "no body")
    }
  }
}

/// Reads the first file of an HTML form. Other fields are skipped.
private final class FormFile: @unchecked Sendable {
  // Sound as Sendable: as `BodyFile`.

  private let file: BodyFile
  private var reader: OpaquePointer?
  /// The field of the file; `nil` before it.
  private var field: String?
  private var length = 0
  private var isEnded = false
  private var isFull = false

  init(_ connection: OpaquePointer, into file: BodyFile) {
    self.file = file
    // Called back before `MHD_post_process` returns, so the reader may borrow its owner. The buffer
    // holds the head of a part.
    reader = MHD_create_post_processor(
      connection, 4_096,
      { form, _, key, name, _, _, bytes, offset, count in
        guard let form, name != nil else { return .YES }
        return Unmanaged<FormFile>.fromOpaque(form).takeUnretainedValue().add(
          UnsafeRawBufferPointer(start: bytes, count: count), at: Int(offset),
          of: key.map { String(cString: $0) })
      }, Unmanaged.passUnretained(self).toOpaque())
  }

  deinit { if let reader { MHD_destroy_post_processor(reader) } }

  private func add(
    _ bytes: UnsafeRawBufferPointer, at offset: Int, of key: String?
  ) -> MHD_Result {
    if field == nil { field = key ?? "" }
    // Another file of the same field begins at 0 again.
    if offset < length { isEnded = true }
    guard field == key ?? "", !isEnded else { return .YES }
    length += bytes.count
    isFull = !file.append(bytes)
    return isFull ? .NO : .YES
  }

  /// Takes the next bytes of the form. Returns `false` if memory is exhausted.
  func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // Without a reader, the form has no boundary of two characters or more.
    guard let start = bytes.baseAddress, let reader, !isFull else { return !isFull }
    _ = MHD_post_process(reader, start.assumingMemoryBound(to: CChar.self), bytes.count)
    return !isFull
  }

  /// Returns the file of the whole form. Call once.
  ///
  /// - Throws: `unsupportedFormat`.
  func end() throws(ImageError) -> BodyFile {
    let isWhole = reader.map { MHD_destroy_post_processor($0) == .YES }
    reader = nil
    guard isWhole == true, field != nil else {
      throw .unsupportedFormat(detail: "the form has no whole file")
    }
    return file
  }
}

/// A memory file that receives a body.
private final class BodyFile: @unchecked Sendable {
  // Sound as Sendable: one thread at a time uses it, the connection's until the body is complete,
  // then that of the task that takes it.

  private var file: MemoryFile?
  private let lease: ByteLease

  init?(_ memory: ByteBudget) {
    guard let lease = memory.lease(0), let file = try? MemoryFile(name: "upload") else {
      return nil
    }
    self.lease = lease
    self.file = consume file
  }

  /// Appends bytes. Returns `false` if memory is exhausted.
  func append(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard lease.grow(by: bytes.count), var file = file.take(),
      (try? file.append(bytes)) != nil
    else { return false }
    self.file = consume file
    return true
  }

  /// Returns the sealed file, which can no longer change; `nil` on a second call.
  func finish() -> FileRegion? {
    guard let file = file.take() else { return nil }
    return try? file.sealed(lease: lease)
  }
}

extension Connection {
  func takeBody() -> RequestBody {
    let body = body
    self.body = RequestBody()
    return body
  }
}

extension RequestContext {
  /// Refuses a request whose `Content-Length` is too long, before its body is read. A client that
  /// sent `Expect: 100-continue` relies on this (RFC 9110, section 10.1.1). Returns `nil` if the
  /// body will be read.
  func refuseBody() -> MHD_Result? {
    guard let length = field("Content-Length").flatMap({ Int($0) }),
      length > RequestBody.maximumDiscarded
    else { return nil }
    let limit = bodyPolicy.limit
    guard length > RequestBody.maximumRead(limit: limit) else { return nil }
    client.isActive = true
    client.loop.active.add(1)
    do throws(ImageError) {
      _ = try admit()
      return refuse(
        .bodyTooLarge(
          limit: limit > 0 ? limit : RequestBody.maximumDiscarded, key: bodyPolicy.key))
    } catch {
      return refuse(error)
    }
  }

  /// Takes body bytes. Returns `false` if the connection must be closed.
  func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // Evaluated once per body.
    if client.body.count == 0 {
      let body = bodyPolicy
      if body != .discard {
        client.body.begin(body, memory: handler.services.bodies, form: isForm ? connection : nil)
        // The header's deadline does not apply to the body.
        client.watch.deadline =
          Clock.coarseMilliseconds()
          + policy.transferTime.milliseconds(
            for: min(field("Content-Length").flatMap { Int($0) } ?? body.limit, body.limit))
      }
    }
    return client.body.take(bytes)
  }

  /// Whether the body is an HTML form with a file (RFC 7578).
  private var isForm: Bool {
    field("Content-Type")?.lowercased().hasPrefix("multipart/form-data") == true
  }

  /// Whether the request may bring its source along.
  var mayBringSource: Bool {
    guard hasSecret, let target = client.target else { return false }
    return policy.rules.bodies == .all
      || target.isSigned && !target.isExpired(at: Clock.now()) || isOperator
  }

  /// Whether the request has the secret that its door asks for, if it does.
  var hasSecret: Bool {
    guard let secret = client.target?.secret else { return true }
    let given = Forwarding.value(of: secret.field, on: connection) ?? ""
    return secret.values.contains { HMAC.isEqual(Array(given.utf8), $0) }
  }

  /// The endpoint's policy for the body. Bodies of clients without access are discarded, so that
  /// they cannot fill memory.
  private var bodyPolicy: BodyPolicy {
    guard let endpoint = client.target?.endpoint else { return .discard }
    let body = endpoint.bodyPolicy(for: client.method, in: policy.configuration)
    guard body != .discard, hasAccess(to: endpoint) else { return .discard }
    guard endpoint.access == .open else { return body }
    guard mayBringSource else { return .discard }
    // An operator's rules may allow what the target was refused for.
    guard case .success(let request)? = client.target?.request, request.source.scheme == .body
    else { return isOperator ? body : .discard }
    return body
  }
}
