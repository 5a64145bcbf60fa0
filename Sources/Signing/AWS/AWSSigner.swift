// AWSSigner: signs requests with AWS Signature Version 4.

import Model

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
      + "SignedHeaders=\(signedFields), Signature=\(HMAC.hexadecimal(signature))"
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

/// A time as AWS writes it (ISO 8601, basic form, UTC).
struct AWSDate: Hashable {
  /// The day, `20130524`.
  let day: String
  /// Day and time, `20130524T000000Z`.
  let text: String

  init(_ time: UnixTime) {
    func padded(_ number: Int, to width: Int = 2) -> String {
      let digits = String(number)
      return String(repeating: "0", count: max(width - digits.count, 0)) + digits
    }
    let second = ((time.seconds % 86_400) + 86_400) % 86_400
    let date = HTTPDate.civilDate(daysSinceEpoch: (time.seconds - second) / 86_400)
    day = padded(date.year, to: 4) + padded(date.month) + padded(date.day)
    text =
      "\(day)T" + padded(second / 3_600) + padded(second / 60 % 60) + padded(second % 60) + "Z"
  }
}
