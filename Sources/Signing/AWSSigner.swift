// AWSSigner: signs requests with AWS Signature Version 4.

/// Signs requests to one region and service (AWS Signature Version 4 with `Authorization`). Without
/// clock and state: the caller tells the time. S3 accepts 15 minutes of difference.
///
/// curl's `CURLOPT_AWS_SIGV4` takes the time from the clock, so no test could compare it with AWS's
/// published signatures.
public struct AWSSigner: Hashable, Sendable {
  /// The keys.
  public let credentials: AWSCredentials
  /// The region, such as `eu-central-1`.
  public let region: String
  /// The service; `s3` for S3.
  public let service: String

  /// Creates a signer.
  public init(_ credentials: AWSCredentials, region: String, service: String = "s3") {
    self.credentials = credentials
    self.region = region
    self.service = service
  }

  /// Returns the fields that a request carries besides `Host` and its own: `X-Amz-Date`, for S3
  /// `X-Amz-Content-Sha256`, `X-Amz-Security-Token` with temporary credentials, `Authorization`.
  ///
  /// - Parameter time: when the request is sent, from the year 0 to 9999.
  public func fields(for request: AWSRequest, at time: UnixTime) -> [HeaderField] {
    let date = AWSDate(time)
    var more = [field("X-Amz-Date", date.text)]
    // S3 requires it; other services compute the hash themselves.
    if service == "s3" { more.append(field("X-Amz-Content-Sha256", request.payload.text)) }
    if let token = credentials.sessionToken { more.append(field("X-Amz-Security-Token", token)) }
    let (canonical, signedFields) = request.canonical(with: more)
    let scope = "\(date.day)/\(region)/\(service)/aws4_request"
    let text =
      "AWS4-HMAC-SHA256\n\(date.text)\n\(scope)\n\(HMAC.hexSHA256(of: Array(canonical.utf8)))"
    let signature = HMAC.sha256(of: Array(text.utf8), key: key(for: date.day))
    let authorization =
      "AWS4-HMAC-SHA256 Credential=\(credentials.accessKey)/\(scope), "
      + "SignedHeaders=\(signedFields), Signature=\(signature.map { $0.hexadecimal(2) }.joined())"
    return more + [field("Authorization", authorization)]
  }

  /// Returns the key of a day, a region and a service ("Derive a signing key").
  func key(for day: String) -> [UInt8] {
    var key = Array("AWS4\(credentials.secretKey)".utf8)
    for part in [day, region, service, "aws4_request"] {
      key = HMAC.sha256(of: Array(part.utf8), key: key)
    }
    return key
  }

  private func field(_ name: String, _ value: String) -> HeaderField {
    // The initializers of the parts let no character through that a field cannot carry.
    guard let field = HeaderField(name, value: value) else {
      preconditionFailure("\(name) has an invalid value")
    }
    return field
  }
}

/// A time in UTC as AWS writes it (ISO 8601, basic form), or as RFC 3339 does (extended form).
public struct AWSDate: Hashable {
  /// The day, `20130524`, or `2013-05-24`.
  public let day: String
  /// Day and time, `20130524T000000Z`, or `2013-05-24T00:00:00Z`.
  public let text: String

  /// Writes a time.
  public init(_ time: UnixTime, isExtended: Bool = false) {
    let form = isExtended ? "%04Y-%m-%dT%H:%M:%SZ" : "%04Y%m%dT%H%M%SZ"
    var bytes: [UInt8] = []
    WallClock.append(time.seconds, as: form, to: &bytes)
    text = String(decoding: bytes, as: UTF8.self)
    day = String(text.prefix { $0 != "T" })
  }
}

/// A request that is to be signed (AWS Signature Version 4, "Create a canonical request").
public struct AWSRequest: Sendable {
  /// The body, as the signature covers it.
  public enum Payload: Hashable, Sendable {
    /// No body.
    case empty
    /// A body with this SHA-256, 64 hexadecimal digits in lower case.
    case hash(String)
    /// A body that the signature does not cover. Only TLS protects it.
    case unsigned

    /// Returns the payload for the bytes of a body.
    public static func bytes(_ body: [UInt8]) -> Payload { .hash(HMAC.hexSHA256(of: body)) }

    /// The text in the canonical request and in `X-Amz-Content-Sha256`.
    var text: String {
      switch self {
      // SHA-256 of no bytes.
      case .empty: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
      case .hash(let digits): digits
      case .unsigned: "UNSIGNED-PAYLOAD"
      }
    }
  }

  /// The method, in capitals.
  public var method: String
  /// The value of `Host`, as it is sent: with the port, unless it is the scheme's usual one.
  public var host: String
  /// The path exactly as it is sent (`PercentEncoding.encodePath`). S3 does not normalize paths.
  public var path: String
  /// The parameters of the query, decoded, in any order.
  public var query: [(name: String, value: String)]
  /// Further fields that the signature covers, all `x-amz-…` ones included. Sent as they are.
  public var fields: [HeaderField]
  /// The body.
  public var payload: Payload

  /// Creates a request.
  public init(
    method: String = "GET", host: String, path: String,
    query: [(name: String, value: String)] = [], fields: [HeaderField] = [],
    payload: Payload = .empty
  ) {
    self.method = method
    self.host = host
    self.path = path
    self.query = query
    self.fields = fields
    self.payload = payload
  }

  /// The parameters as they are signed, encoded and sorted. A request may send them in this form.
  public var canonicalQuery: String {
    query.map { (PercentEncoding.encode($0.name), PercentEncoding.encode($0.value)) }
      // All characters are ASCII, so this is the order of their bytes.
      .sorted { $0 < $1 }.map { "\($0)=\($1)" }.joined(separator: "&")
  }

  /// Returns the canonical request and the list of signed fields, with further fields.
  func canonical(with more: [HeaderField]) -> (text: String, signedFields: String) {
    var values: [String: [String]] = ["host": [host]]
    for field in fields + more {
      values[field.name.lowercased(), default: []].append(Self.collapsed(field.value))
    }
    let names = values.keys.sorted()
    let lines = names.map { "\($0):\((values[$0] ?? []).joined(separator: ","))\n" }.joined()
    let signed = names.joined(separator: ";")
    let parts = [method, path, canonicalQuery, lines, signed, payload.text]
    return (parts.joined(separator: "\n"), signed)
  }

  /// Returns a value with one space for each run of spaces.
  private static func collapsed(_ value: String) -> String {
    value.split(separator: " ").joined(separator: " ")
  }
}

/// The code of an error in XML (Amazon S3 API Reference, "REST error responses").
public enum AWSErrorCode {
  /// Returns the `<Code>`: 1 to 64 letters, digits and dots; `nil` without one. Everything else in
  /// the body may repeat parts of the request, so it is not used.
  public static func find(in body: [UInt8]) -> String? {
    let text = String(decoding: body, as: UTF8.self)
    guard let start = text.firstRange(of: "<Code>"),
      let end = text[start.upperBound...].firstRange(of: "</Code>")
    else { return nil }
    let code = text[start.upperBound..<end.lowerBound]
    return (1...64).contains(code.utf8.count) && code.isPlain(with: ".") ? String(code) : nil
  }
}
