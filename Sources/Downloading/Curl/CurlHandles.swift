// EasyHandle and MultiHandle: the owners of curl's two kinds of handles, each status checked.

import CCurl
import Model

/// curl's global state, made once a process (since 7.84 from any thread) and kept to its end.
enum Curl {
  static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// `Timeout was reached (28)`.
  static func text(_ code: CURLcode) -> String {
    "\(String(cString: curl_easy_strerror(code))) (\(code.rawValue))"
  }
}

/// One transfer of curl's, used on the transfer thread alone.
struct EasyHandle: ~Copyable {
  /// What curl calls it; valid as long as this owner.
  let pointer: UnsafeMutableRawPointer
  /// Where curl writes why a transfer failed; freed after curl's handle.
  private let errorText: UnsafeMutablePointer<CChar>

  init() throws(ImageError) {
    guard Curl.isReady, let pointer = curl_easy_init() else {
      throw .internal(detail: "curl_easy_init failed")
    }
    self.pointer = pointer
    errorText = .allocate(capacity: Int(CURL_ERROR_SIZE))
    errorText.initialize(repeating: 0, count: Int(CURL_ERROR_SIZE))
    // The only status not looked at: without the text there is still the code.
    _ = pictor_curl_set_pointer(pointer, CURLOPT_ERRORBUFFER, errorText)
  }

  deinit {
    curl_easy_cleanup(pointer)
    errorText.deallocate()
  }

  /// Why the transfer failed, for operators: curl's own words where it has any.
  func detail(of code: CURLcode) -> String {
    let text = String(cString: errorText)
    return text.isEmpty ? Curl.text(code) : "\(text) (\(code.rawValue))"
  }

  func set(_ option: CURLoption, _ value: Int) throws(ImageError) {
    try check(pictor_curl_set_long(pointer, option, value), option)
  }

  func set(_ option: CURLoption, _ value: Bool) throws(ImageError) {
    try set(option, value ? 1 : 0)
  }

  /// curl copies the text.
  func set(_ option: CURLoption, _ value: String) throws(ImageError) {
    try check(pictor_curl_set_string(pointer, option, value), option)
  }

  func set(_ option: CURLoption, pointer value: UnsafeMutableRawPointer?) throws(ImageError) {
    try check(pictor_curl_set_pointer(pointer, option, value), option)
  }

  func set(_ option: CURLoption, function: curl_write_callback) throws(ImageError) {
    try check(pictor_curl_set_write_function(pointer, option, function), option)
  }

  func setOpenSocket(function: curl_opensocket_callback) throws(ImageError) {
    try check(
      pictor_curl_set_open_socket_function(pointer, function), CURLOPT_OPENSOCKETFUNCTION)
  }

  func setRequest(function: curl_prereq_callback) throws(ImageError) {
    try check(pictor_curl_set_prereq_function(pointer, function), CURLOPT_PREREQFUNCTION)
  }

  private func number(_ info: CURLINFO) -> Int {
    var value = 0
    return pictor_curl_get_long(pointer, info, &value) == CURLE_OK ? value : 0
  }

  /// One of curl's times, all of which count from the start of the transfer.
  private func time(_ info: CURLINFO) -> Duration {
    var value: curl_off_t = 0
    return pictor_curl_get_offset(pointer, info, &value) == CURLE_OK
      ? .microseconds(value) : .zero
  }

  /// How long the steps of the transfer that ended took. A connection used again took no time to make.
  var timings: Timings {
    var timings = Timings()
    let connected = time(CURLINFO_CONNECT_TIME_T)
    let secured = time(CURLINFO_APPCONNECT_TIME_T)
    if number(CURLINFO_NUM_CONNECTS) > 0 {
      let resolved = time(CURLINFO_NAMELOOKUP_TIME_T)
      timings.dns = resolved
      timings.connect = max(connected - resolved, .zero)
      if secured > connected { timings.tls = secured - connected }
    }
    let firstByte = time(CURLINFO_STARTTRANSFER_TIME_T)
    if firstByte > .zero {
      timings.ttfb = max(firstByte - time(CURLINFO_PRETRANSFER_TIME_T), .zero)
      timings.download = max(time(CURLINFO_TOTAL_TIME_T) - firstByte, .zero)
    }
    return timings
  }

  /// How many cookies the handle's jar holds.
  var cookieCount: Int {
    var list: UnsafeMutablePointer<curl_slist>?
    guard pictor_curl_get_list(pointer, CURLINFO_COOKIELIST, &list) == CURLE_OK else { return 0 }
    defer { curl_slist_free_all(list) }
    return sequence(first: list) { $0?.pointee.next }.prefix { $0 != nil }.count { _ in true }
  }

  /// Empties the handle's jar. A jar that curl cannot empty is looked at again later.
  func clearCookies() { _ = pictor_curl_set_string(pointer, CURLOPT_COOKIELIST, "ALL") }

  /// Takes the handle out of its jar, which curl frees only when nobody uses it.
  func leaveJar() { _ = pictor_curl_set_pointer(pointer, CURLOPT_SHARE, nil) }

  private func check(_ code: CURLcode, _ option: CURLoption) throws(ImageError) {
    guard code == CURLE_OK else {
      throw .internal(detail: "curl option \(option.rawValue): \(Curl.text(code))")
    }
  }
}

/// A header list; curl keeps a pointer to it, so it outlives the transfers it is set for.
final class HeaderList: @unchecked Sendable {
  // Sound as Sendable: the list is whole before init returns, and curl only reads it.

  let pointer: UnsafeMutablePointer<curl_slist>?

  init(_ lines: [String]) throws(ImageError) {
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

/// All transfers of one thread, with the connections and names they share.
final class MultiHandle: @unchecked Sendable {
  // Sound as Sendable: only `wakeUp` is called from other threads than the transfer thread, and curl allows that
  // (curl_multi_wakeup(3)); the handle itself never changes.

  private let handle: UnsafeMutableRawPointer

  init(idleConnectionLimit: Int) throws(ImageError) {
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
      // `deinit` frees the handle: every stored property is set by now.
      throw .internal(detail: "curl multi option \(option.rawValue)")
    }
  }

  deinit { curl_multi_cleanup(handle) }

  func add(_ easy: UnsafeMutableRawPointer) throws(ImageError) {
    let code = curl_multi_add_handle(handle, easy)
    guard code == CURLM_OK else { throw Self.error("add_handle", code) }
  }

  /// Ends a transfer if it runs: closes its connection, or its stream of one.
  func remove(_ easy: UnsafeMutableRawPointer) { curl_multi_remove_handle(handle, easy) }

  /// Does what can be done without waiting, then returns the transfers that have ended.
  func perform() throws(ImageError) -> [(easy: UnsafeMutableRawPointer, code: CURLcode)] {
    var running: CInt = 0
    let code = curl_multi_perform(handle, &running)
    guard code == CURLM_OK else { throw Self.error("perform", code) }
    var ended: [(UnsafeMutableRawPointer, CURLcode)] = []
    var left: CInt = 0
    while let message = curl_multi_info_read(handle, &left)?.pointee {
      // The message itself is gone with the next call of curl's: copied out first.
      if message.msg == CURLMSG_DONE, let easy = message.easy_handle {
        ended.append((easy, message.data.result))
      }
    }
    return ended
  }

  /// Waits for sockets, curl's own timers, `wakeUp`, or this long at most.
  func wait(atMost timeout: Duration) throws(ImageError) {
    let milliseconds = (timeout / .milliseconds(1)).rounded(.up)
    let code = curl_multi_poll(handle, nil, 0, CInt(min(max(milliseconds, 0), 60_000)), nil)
    guard code == CURLM_OK else { throw Self.error("poll", code) }
  }

  /// Ends a `wait`, the present one or else the next; from any thread.
  func wakeUp() { curl_multi_wakeup(handle) }

  private static func error(_ call: String, _ code: CURLMcode) -> ImageError {
    .internal(detail: "curl_multi_\(call): \(String(cString: curl_multi_strerror(code)))")
  }
}
