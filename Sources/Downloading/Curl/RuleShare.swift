// RuleShare: the connections and the cookies of one host rule, which curl keeps in memory.

import CCurl
import Model
import Requesting

/// What all transfers of one rule share, and no other transfer: idle connections, and cookies if the
/// rule keeps them. curl assigns cookies to hosts and paths.
///
/// A rule decides about credentials, certificates and the proxy. Without pools of their own, two rules
/// with one proxy would share its connections, with the user that opened them. Only the transfer
/// thread uses a share, so curl needs no locks.
final class RuleShare: @unchecked Sendable {
  // Sound as Sendable: created before the transfer thread starts or on it, and used on that thread only from then on.

  /// curl's share handle. It outlives the easy handles that use it, because their transfers retain
  /// the share.
  let pointer: OpaquePointer
  /// Whether the rule keeps cookies.
  let keepsCookies: Bool
  private var answers = 0

  /// Maximum number of cookies; more are discarded together, so that an origin cannot fill the
  /// memory. A browser keeps 180 per site.
  static let limit = 1_000
  /// Number of responses after which the cookies are counted. One response can set up to 50.
  private static let interval = 64

  init(keepsCookies: Bool) throws(ImageError) {
    guard Curl.isReady, let pointer = curl_share_init() else {
      throw .internal(detail: "curl_share_init failed")
    }
    self.pointer = OpaquePointer(pointer)
    self.keepsCookies = keepsCookies
    // If this throws, `deinit` frees the handle, because every stored property is set.
    let kinds = [CURL_LOCK_DATA_CONNECT] + (keepsCookies ? [CURL_LOCK_DATA_COOKIE] : [])
    for kind in kinds {
      let code = pictor_curl_share_data(pointer, kind)
      guard code == CURLSHE_OK else {
        throw .internal(detail: "curl share: \(String(cString: curl_share_strerror(code)))")
      }
    }
  }

  deinit { curl_share_cleanup(UnsafeMutableRawPointer(pointer)) }

  /// Records a response on a handle that uses this share.
  func receivedAnswer(on easy: borrowing EasyHandle) {
    guard keepsCookies else { return }
    answers += 1
    guard answers % Self.interval == 0, easy.cookieCount > Self.limit else { return }
    easy.clearCookies()
  }
}
