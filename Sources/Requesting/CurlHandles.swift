// CurlHandles: owners of curl's handles; every status is checked.

import CCurl
import Core
import Glibc

/// curl's global state, initialized once per process (from any thread since 7.84) and never freed.
package enum Curl {
  package static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// `Timeout was reached (28)`.
  package static func text(_ code: CURLcode) -> String {
    "\(String(cString: curl_easy_strerror(code))) (\(code.rawValue))"
  }

  /// Opens a socket that imaging workers do not inherit.
  package static func socket(for address: UnsafePointer<curl_sockaddr>) -> curl_socket_t {
    let kind = address.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue)
    return Glibc.socket(address.pointee.family, kind, address.pointee.protocol)
  }
}

/// A transfer of curl. Used on one thread only.
package struct EasyHandle: ~Copyable {
  /// curl's handle, valid as long as this owner.
  package let pointer: UnsafeMutableRawPointer
  /// The buffer for curl's error message; freed after curl's handle.
  private let errorText: UnsafeMutablePointer<CChar>

  package init() throws(ImageError) {
    guard Curl.isReady, let pointer = curl_easy_init() else {
      throw .internal(detail: "curl_easy_init failed")
    }
    self.pointer = pointer
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    // The only status that is ignored: without the message there is still the code.
    _ = pictor_curl_set_pointer(pointer, CURLOPT_ERRORBUFFER, errorText)
  }

  deinit {
    curl_easy_cleanup(pointer)
    errorText.deallocate()
  }

  /// Returns why the transfer failed, for operators. Uses curl's message if there is one.
  package func detail(of code: CURLcode) -> String {
    let text = String(cString: errorText)
    return text.isEmpty ? Curl.text(code) : "\(text) (\(code.rawValue))"
  }

  package func set(_ option: CURLoption, to value: Int) throws(ImageError) {
    try check(pictor_curl_set_long(pointer, option, value), setting: option)
  }

  package func set(_ option: CURLoption, to value: Bool) throws(ImageError) {
    try set(option, to: value ? 1 : 0)
  }

  /// Sets a text option. curl copies the text.
  package func set(_ option: CURLoption, to value: String) throws(ImageError) {
    try check(pictor_curl_set_string(pointer, option, value), setting: option)
  }

  package func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer?) throws(ImageError)
  {
    try check(pictor_curl_set_pointer(pointer, option, value), setting: option)
  }

  package func set(_ option: CURLoption, function: curl_write_callback) throws(ImageError) {
    try check(pictor_curl_set_write_function(pointer, option, function), setting: option)
  }

  package func setOpenSocket(function: curl_opensocket_callback) throws(ImageError) {
    try check(
      pictor_curl_set_open_socket_function(pointer, function), setting: CURLOPT_OPENSOCKETFUNCTION)
  }

  package func setRequest(function: curl_prereq_callback) throws(ImageError) {
    try check(pictor_curl_set_prereq_function(pointer, function), setting: CURLOPT_PREREQFUNCTION)
  }

  /// Returns a number that curl knows of the transfer; 0 if it does not.
  package func number(_ info: CURLINFO) -> Int {
    var value = 0
    return pictor_curl_get_long(pointer, info, &value) == CURLE_OK ? value : 0
  }

  /// Does the same for the numbers that curl keeps as `curl_off_t`; their names end in `_T`, or are
  /// of `Retry-After`.
  package func offset(_ info: CURLINFO) -> Int {
    var value: curl_off_t = 0
    return pictor_curl_get_offset(pointer, info, &value) == CURLE_OK ? Int(value) : 0
  }

  /// Returns one of curl's times, which count from the start of the transfer.
  private func time(_ info: CURLINFO) -> Duration { .microseconds(offset(info)) }

  /// The durations of a finished transfer's steps. A reused connection has no connection times, and
  /// one that failed has none of what curl did not finish.
  package var timings: Timings {
    var timings = Timings()
    let connected = time(CURLINFO_CONNECT_TIME_T)
    let secured = time(CURLINFO_APPCONNECT_TIME_T)
    if number(CURLINFO_NUM_CONNECTS) > 0 {
      let resolved = time(CURLINFO_NAMELOOKUP_TIME_T)
      timings.dns = resolved
      if connected > .zero { timings.connect = max(connected - resolved, .zero) }
      if secured > connected { timings.tls = secured - connected }
    }
    let firstByte = time(CURLINFO_STARTTRANSFER_TIME_T)
    if firstByte > .zero {
      timings.ttfb = max(firstByte - time(CURLINFO_PRETRANSFER_TIME_T), .zero)
      timings.download = max(time(CURLINFO_TOTAL_TIME_T) - firstByte, .zero)
    }
    return timings
  }

  /// Whether the response shares its connection with others: HTTP/2 or later. Valid when its head
  /// has begun.
  package var isMultiplexed: Bool { number(CURLINFO_HTTP_VERSION) >= CURL_HTTP_VERSION_2_0 }

  /// The number of cookies in the handle's jar.
  package var cookieCount: Int {
    var list: UnsafeMutablePointer<curl_slist>?
    guard pictor_curl_get_list(pointer, CURLINFO_COOKIELIST, &list) == CURLE_OK else { return 0 }
    defer { curl_slist_free_all(list) }
    return sequence(first: list) { $0?.pointee.next }.prefix { $0 != nil }.count { _ in true }
  }

  /// Clears the handle's jar. After a failure, the jar is checked again later.
  package func clearCookies() { _ = pictor_curl_set_string(pointer, CURLOPT_COOKIELIST, "ALL") }

  /// Detaches the handle from its share, which curl frees only without users.
  package func leaveShare() { _ = pictor_curl_set_pointer(pointer, CURLOPT_SHARE, nil) }

  private func check(_ code: CURLcode, setting option: CURLoption) throws(ImageError) {
    guard code == CURLE_OK else {
      throw .internal(detail: "curl option \(option.rawValue): \(Curl.text(code))")
    }
  }
}

/// A list of header lines. curl keeps a pointer to it, so it must outlive the transfers that use
/// it.
package final class HeaderList: @unchecked Sendable {
  // Sound as Sendable: the list is complete before init returns, and curl only reads it.

  package let pointer: UnsafeMutablePointer<curl_slist>?

  package init(_ lines: [String]) throws(ImageError) {
    var list: UnsafeMutablePointer<curl_slist>?
    for line in lines {
      guard let longer = curl_slist_append(list, line) else {
        curl_slist_free_all(list)
        throw .internal(detail: "curl_slist_append failed")
      }
      list = longer
    }
    pointer = list
  }

  deinit { curl_slist_free_all(pointer) }
}

/// All transfers of one thread, with their shared connections and resolved names.
package final class MultiHandle: @unchecked Sendable {
  // Sound as Sendable: other threads than the one that owns it only call `wakeUp`, which curl
  // allows (curl_multi_wakeup(3)). The handle itself never changes.

  private let handle: UnsafeMutableRawPointer

  package init(idleConnectionLimit: Int) throws(ImageError) {
    guard Curl.isReady, let handle = curl_multi_init() else {
      throw .internal(detail: "curl_multi_init failed")
    }
    self.handle = handle
    let options = [
      (CURLMOPT_PIPELINING, Int(CURLPIPE_MULTIPLEX)),
      (CURLMOPT_MAXCONNECTS, max(idleConnectionLimit, 1)),
    ]
    for (option, value) in options
    where pictor_curl_multi_set_long(handle, option, value) != CURLM_OK {
      // `deinit` frees the handle, because every stored property is set.
      throw .internal(detail: "curl multi option \(option.rawValue)")
    }
  }

  deinit { curl_multi_cleanup(handle) }

  package func add(_ easy: UnsafeMutableRawPointer) throws(ImageError) {
    let code = curl_multi_add_handle(handle, easy)
    guard code == CURLM_OK else { throw Self.error("add_handle", code: code) }
  }

  /// Removes a transfer. A running one is aborted: curl closes its connection or stream.
  package func remove(_ easy: UnsafeMutableRawPointer) { curl_multi_remove_handle(handle, easy) }

  /// Makes progress without waiting, and returns the finished transfers.
  package func perform() throws(ImageError) -> [(easy: UnsafeMutableRawPointer, code: CURLcode)] {
    var running: CInt = 0
    let code = curl_multi_perform(handle, &running)
    guard code == CURLM_OK else { throw Self.error("perform", code: code) }
    var ended: [(UnsafeMutableRawPointer, CURLcode)] = []
    var left: CInt = 0
    while let message = curl_multi_info_read(handle, &left)?.pointee {
      // The next curl call invalidates the message, so it is copied first.
      if message.msg == CURLMSG_DONE, let easy = message.easy_handle {
        ended.append((easy, message.data.result))
      }
    }
    return ended
  }

  /// Waits for sockets, curl's timers or `wakeUp`, up to `timeout`.
  ///
  /// - Parameter descriptor: a descriptor that ends the wait when it is readable; negative for
  ///   none.
  package func wait(atMost timeout: Duration, or descriptor: CInt = -1) throws(ImageError) {
    let milliseconds = (timeout / .milliseconds(1)).rounded(.up)
    var watched = curl_waitfd(fd: descriptor, events: Int16(CURL_WAIT_POLLIN), revents: 0)
    let code = curl_multi_poll(
      handle, &watched, descriptor < 0 ? 0 : 1, CInt(min(max(milliseconds, 0), 60_000)), nil)
    guard code == CURLM_OK else { throw Self.error("poll", code: code) }
  }

  /// Ends the current `wait`, or the next one. Callable from any thread.
  package func wakeUp() { curl_multi_wakeup(handle) }

  private static func error(_ call: String, code: CURLMcode) -> ImageError {
    .internal(detail: "curl_multi_\(call): \(String(cString: curl_multi_strerror(code)))")
  }
}
