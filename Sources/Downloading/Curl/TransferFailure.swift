// TransferFailure: what curl's codes and origins' statuses mean in the contract's words.

import CCurl
import Model

/// The two tables of `TransferFailure.error`, and which failures are of the connection alone.
enum TransferFailure {
  /// What a failed transfer is answered with.
  ///
  /// | curl says | before the head of the answer was whole | after |
  /// | --- | --- | --- |
  /// | timed out | `sourceTimeout` | `sourceTimeout` |
  /// | TLS: handshake, certificate, cipher, authorities | `sourceTLS` | `sourceTLS` |
  /// | URL malformed | `invalidURL` | – |
  /// | bad option, not built in, aborted by our own callback | `internal` | `internal` |
  /// | all else: name, connection, reset, nothing or nonsense (also HTTP/0.9) received | `sourceUnreachable` | `sourceIncomplete` |
  ///
  /// - Parameter detail: what the operator is told.
  static func error(
    _ code: CURLcode, detail: String, afterHead: Bool, url: SourceURL
  ) -> ImageError {
    switch code {
    case CURLE_OPERATION_TIMEDOUT:
      return .sourceTimeout(detail: detail)
    case CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CERTPROBLEM,
      CURLE_SSL_CIPHER, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_CRL_BADFILE, CURLE_SSL_ISSUER_ERROR,
      CURLE_SSL_ENGINE_NOTFOUND, CURLE_SSL_ENGINE_SETFAILED, CURLE_SSL_ENGINE_INITFAILED,
      CURLE_SSL_PINNEDPUBKEYNOTMATCH, CURLE_SSL_INVALIDCERTSTATUS, CURLE_SSL_CLIENTCERT:
      return .sourceTLS(detail: detail)
    case CURLE_URL_MALFORMAT:
      return .invalidURL(url.text, reason: "it cannot be fetched")
    // Not CURLE_OUT_OF_MEMORY: that is what 7.88 says of a header line of more than 100 kB. Nor CURLE_WRITE_ERROR: the
    // callbacks say themselves why they end a transfer, and 7.88 has it for what follows the end of a gzip body.
    case CURLE_FAILED_INIT, CURLE_NOT_BUILT_IN, CURLE_BAD_FUNCTION_ARGUMENT,
      CURLE_UNKNOWN_OPTION, CURLE_ABORTED_BY_CALLBACK:
      return .internal(detail: detail)
    default:
      return afterHead ? .sourceIncomplete(detail: detail) : .sourceUnreachable(detail: detail)
    }
  }

  /// What a final status is answered with; `nil` for a good one: 200, and 203, which a proxy on the way may make of it.
  /// Nothing but a whole body was asked for, so 204 and 206 are errors like the rest, and so is a 304 to a request
  /// without validators.
  ///
  /// - Parameter retryAfter: for how many seconds the origin wants to be left alone.
  static func error(status: Int, retryAfter: Int? = nil) -> ImageError? {
    switch status {
    case 200, 203: nil
    case 404, 410: .sourceNotFound(status: status)
    default: .sourceError(status: status, retryAfter: retryAfter)
    }
  }

  /// Whether the connection failed, before there was one or before anything came over it; to be asked where no byte of
  /// an answer came.
  static func isOfConnection(_ code: CURLcode, hasSentRequest: Bool) -> Bool {
    switch code {
    // HTTP2_STREAM: a stream that the server refused or reset (RFC 9113, section 8.7), HTTP2: its connection's end.
    case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_CONNECT,
      CURLE_SEND_ERROR, CURLE_RECV_ERROR, CURLE_GOT_NOTHING, CURLE_HTTP2, CURLE_HTTP2_STREAM:
      true
    case CURLE_OPERATION_TIMEDOUT: !hasSentRequest
    default: false
    }
  }
}
