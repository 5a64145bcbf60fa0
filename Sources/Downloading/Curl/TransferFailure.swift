// TransferFailure: maps curl's codes and origins' statuses to errors.

import CCurl
import Model

/// Maps curl's codes and origins' statuses to errors, and classifies connection failures.
enum TransferFailure {
  /// Returns the error for a failed transfer.
  ///
  /// | curl's code | before the response head is complete | after |
  /// | --- | --- | --- |
  /// | timed out | `sourceTimeout` | `sourceTimeout` |
  /// | TLS: handshake, certificate, cipher, authorities | `sourceTLS` | `sourceTLS` |
  /// | URL malformed | `invalidURL` | – |
  /// | bad option, not built in, aborted by our own callback | `internal` | `internal` |
  /// | any other: name, connection, reset, no or invalid data | `sourceUnreachable` | `sourceIncomplete` |
  ///
  /// - Parameters:
  ///   - code: curl's code.
  ///   - detail: the detail for the operator.
  ///   - afterHead: whether the response head was complete.
  ///   - url: the requested URL.
  ///   - timeoutKey: the configuration key that decides a time-out.
  static func error(
    _ code: CURLcode, detail: String, afterHead: Bool, url: SourceURL, timeoutKey: String? = nil
  ) -> ImageError {
    switch code {
    case CURLE_OPERATION_TIMEDOUT:
      return .sourceTimeout(detail: detail, key: timeoutKey)
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR,
      CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED,
      CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
      return .sourceTLS(detail: detail)
    case CURLE_URL_MALFORMAT:
      return .invalidURL(url.text, reason: "it cannot be fetched")
    // Not CURLE_OUT_OF_MEMORY: curl 7.88 reports it for a header line above 100 kB. Not CURLE_WRITE_ERROR: callbacks
    // report by themselves why they end a transfer, and curl 7.88 uses it for bytes after the end of a gzip transfer coding.
    // After the head, curl 7.88 reports a trailer without a colon as a bad argument.
    case CURLE_BAD_FUNCTION_ARGUMENT where !afterHead,
      CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN, CURLE_UNKNOWN_OPTION, CURLE_ABORTED_BY_CALLBACK:
      return .internal(detail: detail)
    default:
      return afterHead ? .sourceIncomplete(detail: detail) : .sourceUnreachable(detail: detail)
    }
  }

  /// Returns the error for a final status, or `nil` for 200 and 203; a proxy may turn 200 into 203.
  /// Requests ask for a complete body, so 204 and 206 are errors, and so is a 304 to a request
  /// without validators. `OriginResponseParser` makes 200 of a 201 and of a 206 with everything.
  ///
  /// - Parameters:
  ///   - status: the final status.
  ///   - retryAfter: the origin's `Retry-After`, in seconds.
  static func error(status: Int, retryAfter: Int? = nil) -> ImageError? {
    switch status {
    case 200, 203: nil
    case 404, 410: .sourceNotFound(status: status)
    default: .sourceError(status: status, retryAfter: retryAfter)
    }
  }

  /// Whether the connection failed before or after it was made. Only valid if no byte of a response
  /// was received.
  static func isOfConnection(_ code: CURLcode, hasSentRequest: Bool) -> Bool {
    switch code {
    // HTTP2_STREAM: the server refused or reset a stream (RFC 9113, section 8.7). HTTP2: the
    // connection ended.
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
      CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2, CURLE_HTTP2_STREAM:
      true
    case CURLE_OPERATION_TIMEDOUT: !hasSentRequest
    default: false
    }
  }
}
