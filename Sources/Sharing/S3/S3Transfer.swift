// S3Transfer: a read or a write of one entry, how it is signed, and what its response means.

import CCurl
import Core
import Requesting

/// What became of a request to the bucket.
enum S3Outcome: Sendable {
  case found(FileRegion)
  case absent
  case written
  /// The bucket is away or refuses, or the entry is too large, or memory has no room.
  case failed
  /// No answer before the deadline.
  case timedOut
}

struct S3Request: Sendable {
  enum Work: Sendable {
    case read
    /// A write, and when the entry expires.
    case write([UInt8], expires: UnixTime)
  }

  let work: Work
  /// The name of the object after the prefix.
  let path: String
  let deadline: ContinuousClock.Instant

  var isRead: Bool {
    if case .read = work { true } else { false }
  }

  /// Returns the path of an entry: `v:0123…` becomes `v/01/23…`.
  ///
  /// Names are a kind and a digest, so the two digits spread objects evenly over 256 prefixes. S3
  /// splits a bucket by prefixes, and tools can list, copy or remove a part.
  static func path(of name: String) -> String {
    let parts = name.split(separator: ":", maxSplits: 1)
    let digest = parts.last ?? ""
    return "\(parts.first ?? "")/\(digest.prefix(2))/\(digest.dropFirst(2))"
  }

  /// Returns the request, signed now.
  ///
  /// The body is not part of the signature: an entry has a SHA-256 of its own, which each reader
  /// compares, TLS protects the way.
  func request(_ configuration: S3Configuration, at time: UnixTime) -> ServerRequest {
    var request = ServerRequest(isRead ? .get : .put, configuration.base + path)
    var fields: [HeaderField] = []
    if case .write(let body, let expires) = work {
      request.body = body
      fields = [
        ("Content-Type", "application/octet-stream"),
        ("x-amz-meta-expires", Self.text(of: expires)),
      ].compactMap { HeaderField($0.0, value: $0.1) }
    }
    if let signer = configuration.signer {
      fields += signer.fields(
        for: AWSRequest(
          method: request.method.rawValue, host: configuration.host,
          path: configuration.basePath + path, fields: fields,
          payload: isRead ? .empty : .unsigned), at: time)
    }
    request.fields = fields.map { "\($0.name): \($0.value)" } + ["Accept:"]
    request.caFile = configuration.settings.caFile
    // That of an error.
    request.limit = 4 << 10
    return request
  }

  /// Returns a time as RFC 3339 writes it, `2026-11-25T15:00:00Z`.
  static func text(of time: UnixTime) -> String { AWSDate(time, isExtended: true).text }
}

/// A request with its exchange. Entries are received into memory files. Belongs to one thread.
final class S3Transfer {
  /// The outcome, what it says about the bucket, and the reason of a failure.
  typealias End = (S3Outcome, Breaker.Outcome, detail: String?)

  let exchange: ServerExchange
  private let isRead: Bool
  private let budget: ByteBudget
  private let entryLimit: Int
  /// What this machine ended the transfer with.
  private var stop: End?
  /// The declared length.
  private var expected: Int?
  private var received = 0
  private var file: MemoryFile?
  private var lease: ByteLease?

  /// Prepares a request, signed now.
  init(
    _ request: S3Request, _ configuration: S3Configuration, budget: ByteBudget
  ) throws(ImageError) {
    isRead = request.isRead
    self.budget = budget
    entryLimit = configuration.settings.entryLimit
    exchange = try ServerExchange(request.request(configuration, at: .now))
    exchange.sink = { [unowned self] in receive($0) }
  }

  /// Receives a piece of an entry, or of an error. Returns whether curl continues.
  private func receive(_ piece: UnsafeRawBufferPointer) -> Bool {
    guard isRead, exchange.status == 200 else { return exchange.keep(piece) }
    if expected == nil { stop = makeRoom() }
    guard stop == nil, let expected else { return false }
    // Also if curl should pass on more than is declared.
    guard received + piece.count <= expected, (try? file?.append(piece)) != nil else {
      stop = (.failed, .success, nil)
      return false
    }
    received += piece.count
    return true
  }

  /// Prepares the file for an entry. Returns why it cannot be received.
  private func makeRoom() -> End? {
    let length = exchange.easy.offset(CURLINFO_CONTENT_LENGTH_DOWNLOAD_T)
    guard length > 0 else { return (.failed, .failure, "a response without Content-Length") }
    expected = length
    if length <= entryLimit { lease = budget.lease(length) }
    if lease != nil { file = try? MemoryFile(name: "pictor-s3") }
    return file == nil ? (.failed, .success, nil) : nil
  }

  /// Returns how the transfer ended, after curl has ended it.
  func end(_ code: CURLcode) -> End {
    if let stop { return stop }
    guard !exchange.isHeadTooLong else { return (.failed, .failure, "too many header fields") }
    // Of an error that is cut, the status counts.
    guard code == CURLE_OK || exchange.isCut else { return (.failed, .failure, Curl.text(code)) }
    let status = exchange.status
    let name = AWSErrorCode.find(in: exchange.bytes)
    let detail = "status \(status)" + (name.map { ", \($0)" } ?? "")
    switch (isRead, status) {
    case (true, 200):
      guard received > 0, received == expected else {
        return (.failed, .failure, "\(received) bytes of \(expected ?? 0)")
      }
      let region = try? file.take()?.sealed(lease: lease)
      return (region.map { .found($0) } ?? .failed, .success, nil)
    // A missing bucket is 404, too.
    case (true, 404) where name == nil || name == "NoSuchKey": return (.absent, .success, nil)
    // S3 says 200; other servers say 201 for what is new, or 204 (RFC 9110, section 9.3.4).
    case (false, 200), (false, 201), (false, 204): return (.written, .success, nil)
    // Answers about this entry: a conflict, too large, no room.
    case (false, 409), (false, 412), (false, 413), (false, 507):
      return (.failed, .success, detail)
    default: return (.failed, .failure, detail)
    }
  }
}
