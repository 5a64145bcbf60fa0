// ObjectRequest: the signature of a request to an object store, and what its errors say.

import Model
import Signing

/// What requests to object stores have beside other requests.
enum ObjectRequest {
  /// Returns the fields that sign a request now; none for requests to other origins or without credentials. Call it
  /// for each attempt: stores accept a signature for 15 minutes.
  static func signature(for target: DownloadTarget, of rule: HostRule?) -> [HeaderField] {
    guard target.object != nil, let store = rule?.store, let credentials = rule?.storeCredentials
    else { return [] }
    return AWSSigner(credentials, region: store.region).fields(
      for: AWSRequest(host: target.url.authority, path: target.url.path), at: .now)
  }

  /// Returns an error with the store's code as its detail.
  static func error(_ error: ImageError, code: String?) -> ImageError {
    guard case .sourceError(let status, let seconds, _) = error, let code else { return error }
    return .sourceError(
      status: status, retryAfter: seconds,
      detail: "the object store says \(code)" + (advice[code].map { ": \($0)" } ?? ""))
  }

  /// What an operator can do about a code.
  private static let advice = [
    "RequestTimeTooSkewed": "the clock of this machine or of the store is wrong",
    "SignatureDoesNotMatch": "secret_key or region is wrong, or a proxy changes requests",
    "InvalidAccessKeyId": "access_key is unknown",
    "ExpiredToken": "session_token has expired; credentials are read when the server starts",
    "AuthorizationHeaderMalformed": "region is wrong",
    "AccessDenied":
      "the credentials may not read the object, or it is missing and they may not list the bucket",
  ]
}
