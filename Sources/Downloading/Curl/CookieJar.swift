// CookieJar: the cookies of one host rule, kept in memory by curl.

import CCurl
import Model

/// Cookies that all transfers of one rule share; curl knows to which host and path each belongs. Of the transfer thread
/// alone once that runs, so curl needs no locks.
final class CookieJar: @unchecked Sendable {
  // Sound as Sendable: made before the transfer thread starts, and used on that thread alone from then on.

  /// What curl calls it; outlives the handles it is set for, whose transfers hold it.
  let pointer: OpaquePointer
  private var answers = 0

  /// More cookies than this are thrown away together: an origin that sets ever new ones is not to fill the memory. A
  /// browser keeps 180 of one site.
  static let limit = 1_000
  /// After so many answers the cookies are counted, of which each may bring 50.
  private static let interval = 64

  init() throws(ImageError) {
    guard Curl.isReady, let pointer = curl_share_init() else {
      throw .internal(detail: "curl_share_init failed")
    }
    self.pointer = OpaquePointer(pointer)
    // `deinit` frees it where this throws: every stored property is set by now.
    let code = pictor_curl_share_data(pointer, CURL_LOCK_DATA_COOKIE)
    guard code == CURLSHE_OK else {
      throw .internal(detail: "curl share: \(String(cString: curl_share_strerror(code)))")
    }
  }

  deinit { curl_share_cleanup(UnsafeMutableRawPointer(pointer)) }

  /// An answer came in on a handle that this is set for.
  func receivedAnswer(on easy: borrowing EasyHandle) {
    answers += 1
    guard answers % Self.interval == 0, easy.cookieCount > Self.limit else { return }
    easy.clearCookies()
  }
}
