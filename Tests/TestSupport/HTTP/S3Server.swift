// S3Server: a bucket on real sockets, which verifies signatures and fails on demand.

import Core

/// A store in S3's protocol with one bucket, `shared`, addressed by path.
public final class S3Server: Sendable {
  /// The credentials that it knows.
  public static let accessKey = "AKID"
  /// See `accessKey`.
  public static let secret = "the-secret"
  /// The region of its signatures.
  public static let region = "eu-west-3"

  /// Its server, with the requests that it received.
  public let origin: Origin
  private let contents: Lock<[String: [UInt8]]>
  private let behaviour = Lock<(@Sendable (Origin.Request) -> OriginReply?)?>(nil)
  private let seen = Lock<[String: Int]>([:])
  private let badSignatures = Lock<[String]>([])

  /// Starts an empty bucket.
  ///
  /// - Parameters:
  ///   - port: the port of a stopped one that this one replaces; 0 for any free port.
  ///   - objects: what it has at first.
  public init(port: Int = 0, objects: [String: [UInt8]] = [:]) throws {
    origin = try Origin(port: port)
    contents = Lock(objects)
    origin.routeOthers { [weak self] request in self?.answer(request) ?? .closeBeforeHead }
  }

  /// The endpoint.
  public var endpoint: String { "http://127.0.0.1:\(origin.port)" }

  /// The objects by their names.
  public var objects: [String: [UInt8]] { contents.withLock { $0 } }

  /// Changes an object, or removes it.
  public func set(_ name: String, to bytes: [UInt8]?) { contents.withLock { $0[name] = bytes } }

  /// Removes all objects and adds others.
  public func replace(by objects: [String: [UInt8]]) { contents.withLock { $0 = objects } }

  /// Sets what it does in place of its work; `nil`, as reply or closure, is the work itself.
  public func behave(_ reply: (@Sendable (Origin.Request) -> OriginReply?)?) {
    behaviour.withLock { $0 = reply }
  }

  /// Requests with this method so far.
  public func requests(_ method: String) -> Int { seen.withLock { $0[method] ?? 0 } }

  /// Requests so far.
  public var requests: Int { seen.withLock { $0.values.reduce(0, +) } }

  /// Why requests were refused for their signature.
  public var signatureProblems: [String] { badSignatures.withLock { $0 } }

  /// An error as S3 writes it.
  public static func error(_ status: Int, _ code: String) -> OriginReply {
    .status(
      status,
      body: Array(
        "<?xml version=\"1.0\"?>\n<Error><Code>\(code)</Code><Message>m</Message></Error>".utf8))
  }

  private func answer(_ request: Origin.Request) -> OriginReply {
    seen.withLock { $0[request.method, default: 0] += 1 }
    let check = AWSSignatureCheck(
      accessKey: Self.accessKey, secret: Self.secret, region: Self.region)
    if let problem = check.problem(in: request) {
      badSignatures.withLock { $0.append("\(request.method) \(request.target): \(problem)") }
      return Self.error(403, "SignatureDoesNotMatch")
    }
    if let reply = behaviour.withLock({ $0 })?(request) { return reply }
    guard request.path.hasPrefix("/shared/") else { return Self.error(404, "NoSuchBucket") }
    let name = String(request.path.dropFirst("/shared/".count))
    switch request.method {
    case "PUT":
      guard request.headers["content-length"] != nil else {
        return Self.error(411, "MissingContentLength")
      }
      set(name, to: request.body)
      return .status(200)
    case "GET":
      guard let bytes = objects[name] else { return Self.error(404, "NoSuchKey") }
      return .ok(bytes, type: "application/octet-stream")
    default: return Self.error(405, "MethodNotAllowed")
    }
  }
}
