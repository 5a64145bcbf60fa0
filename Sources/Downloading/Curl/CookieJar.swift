// CookieJar: the cookies of one host rule, which curl keeps in memory.

import CCurl
import Model

/// Cookies that all transfers of one rule share. curl assigns them to hosts and paths. Only the
/// transfer thread uses a jar, so curl needs no locks.
final class CookieJar: @unchecked Sendable {
  // Sound as Sendable: created before the transfer thread starts, and used on that thread only from
  // then on.

  /// curl's share handle. It outlives the easy handles that use it, because their transfers retain
  /// the jar.
  let pointer: OpaquePointer
  private var answers = 0

  /// Maximum number of cookies; more are discarded together, so that an origin cannot fill the
  /// memory. A browser keeps 180 per site.
  static let limit = 1_000
  /// Number of responses after which the cookies are counted. One response can set up to 50.
  private static let interval = 64

  init() throws(ImageError) {
    guard Curl.isReady, let pointer = curl_share_init() else {
      throw .internal(detail: "curl_share_init failed")
    }
    self.pointer = OpaquePointer(pointer)
    // If this throws, `deinit` frees the handle, because every stored property is set.
    let code = pictor_curl_share_data(pointer, CURL_LOCK_DATA_COOKIE)
    guard code == CURLSHE_OK else {
      throw .internal(detail: "curl share: \(String(cString: curl_share_strerror(code)))")
    }
  }

  deinit { curl_share_cleanup(UnsafeMutableRawPointer(pointer)) }

  /// Records a response on a handle that uses this jar.
  func receivedAnswer(on easy: borrowing EasyHandle) {
    answers += 1
    guard answers % Self.interval == 0, easy.cookieCount > Self.limit else { return }
    easy.clearCookies()
  }
}
