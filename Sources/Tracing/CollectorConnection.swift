// CollectorConnection: requests to the collector, by libcurl.

import CCurl
import FoundationEssentials
import Glibc
import Model
import Platform

/// Sends requests to one collector, one at a time, on a connection that is kept.
final class CollectorConnection: @unchecked Sendable {
  // Sound as Sendable: one thread posts. Other threads only call `wakeUp`, which curl allows
  // (curl_multi_wakeup(3)), and the handles never change.

  /// A response, as far as it is read: neither its header fields nor its body may have more bytes than `limit`.
  private final class Response {
    static let limit = 64 << 10
    /// The body.
    var bytes: [UInt8] = []
    /// The length of the header fields so far, those of interim responses included.
    var headLength = 0
    /// Whether the body has reached the limit, so that the rest is not read. The status counts all the same.
    var isCut = false

    /// Returns whether curl continues.
    func takeField(_ length: Int) -> Bool {
      headLength += length
      return !isHeadTooLong
    }

    var isHeadTooLong: Bool { headLength > Self.limit }

    /// Returns whether curl continues.
    func takeBody(_ piece: UnsafeRawBufferPointer) -> Bool {
      bytes += piece.prefix(Self.limit - bytes.count)
      isCut = isCut || piece.count > 0 && bytes.count == Self.limit
      return !isCut
    }
  }

  private let multi: UnsafeMutableRawPointer
  private let easy: UnsafeMutableRawPointer
  private let response = Response()
  /// curl keeps a pointer to it.
  private let fields: UnsafeMutablePointer<curl_slist>?
  private let timeout: Duration

  /// Creates a connection; nothing is sent.
  ///
  /// - Throws: `SystemError` if curl has no memory or does not know an option.
  init(_ configuration: SpanExporterConfiguration) throws(SystemError) {
    guard curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK, let multi = curl_multi_init()
    else { throw SystemError(ENOMEM) }
    guard let easy = curl_easy_init() else {
      curl_multi_cleanup(multi)
      throw SystemError(ENOMEM)
    }
    self.multi = multi
    self.easy = easy
    timeout = configuration.timeout
    // No `Expect`, for which curl would wait a second.
    let own = ["Content-Type: application/json", "Accept: application/json", "Expect:"]
    var list: UnsafeMutablePointer<curl_slist>?
    for line in own + configuration.headers.map({ "\($0.name): \($0.value)" }) {
      guard let longer = curl_slist_append(list, line) else {
        curl_slist_free_all(list)
        fields = nil
        throw SystemError(ENOMEM)
      }
      list = longer
    }
    fields = list
    guard configure(configuration) else { throw SystemError(EINVAL) }
  }

  deinit {
    curl_easy_cleanup(easy)
    curl_multi_cleanup(multi)
    curl_slist_free_all(fields)
  }

  private func configure(_ configuration: SpanExporterConfiguration) -> Bool {
    func set(_ option: CURLoption, _ value: Int) -> Bool {
      pictor_curl_set_long(easy, option, value) == CURLE_OK
    }
    func set(_ option: CURLoption, _ value: String) -> Bool {
      pictor_curl_set_string(easy, option, value) == CURLE_OK
    }
    // The response is this object's, which outlives the handle.
    let target = Unmanaged.passUnretained(response).toOpaque()
    return set(CURLOPT_NOSIGNAL, 1) && set(CURLOPT_PROTOCOLS_STR, "http,https")
      && set(CURLOPT_URL, configuration.endpoint)
      && set(CURLOPT_USERAGENT, "Pictor/\(pictorVersion)")
      && set(CURLOPT_FOLLOWLOCATION, 0) && set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
      // Empty: no proxy from the environment either.
      && set(CURLOPT_PROXY, "") && set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
      // A name server that does not answer must not delay the end.
      && set(CURLOPT_QUICK_EXIT, 1) && set(CURLOPT_POST, 1)
      // The file alone: curl would trust the system's folder as well.
      && pictor_curl_set_pointer(easy, CURLOPT_CAPATH, nil) == CURLE_OK
      && (configuration.caFile.isEmpty || set(CURLOPT_CAINFO, configuration.caFile))
      && pictor_curl_set_pointer(easy, CURLOPT_HTTPHEADER, fields) == CURLE_OK
      && pictor_curl_set_pointer(easy, CURLOPT_WRITEDATA, target) == CURLE_OK
      && pictor_curl_set_write_function(
        easy, CURLOPT_WRITEFUNCTION,
        { bytes, size, count, context in
          guard let bytes, let context else { return 0 }
          let response = Unmanaged<Response>.fromOpaque(context).takeUnretainedValue()
          let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
          return response.takeBody(piece) ? size * count : 0
        }) == CURLE_OK
      && pictor_curl_set_pointer(easy, CURLOPT_HEADERDATA, target) == CURLE_OK
      && pictor_curl_set_write_function(
        easy, CURLOPT_HEADERFUNCTION,
        { _, size, count, context in
          guard let context else { return 0 }
          let response = Unmanaged<Response>.fromOpaque(context).takeUnretainedValue()
          return response.takeField(size * count) ? size * count : 0
        }) == CURLE_OK
      && pictor_curl_set_open_socket_function(
        easy,
        { _, _, address in
          guard let address else { return CURL_SOCKET_BAD }
          // Close-on-exec: imaging workers must not inherit connections.
          return socket(
            address.pointee.family, address.pointee.socktype | CInt(SOCK_CLOEXEC.rawValue),
            address.pointee.protocol)
        }) == CURLE_OK
  }

  /// Ends the current wait of `post`, from any thread, so that it looks at its limit again.
  func wakeUp() { curl_multi_wakeup(multi) }

  /// Sends a request and waits for the response. Blocks.
  ///
  /// - Parameter limit: an earlier end of the wait than the time-out; asked again after `wakeUp`.
  func post(
    _ bytes: [UInt8], until limit: () -> ContinuousClock.Instant?
  ) -> CollectorReply {
    response.bytes = []
    response.headLength = 0
    response.isCut = false
    let end = ContinuousClock.now + timeout
    // curl copies the bytes.
    let isSet =
      pictor_curl_set_long(easy, CURLOPT_POSTFIELDSIZE, bytes.count) == CURLE_OK
      && bytes.withUnsafeBytes {
        pictor_curl_set_pointer(
          easy, CURLOPT_COPYPOSTFIELDS, UnsafeMutableRawPointer(mutating: $0.baseAddress))
      } == CURLE_OK
    guard isSet, curl_multi_add_handle(multi, easy) == CURLM_OK else {
      return .failed("out of memory")
    }
    defer { curl_multi_remove_handle(multi, easy) }
    while true {
      var running: CInt = 0
      guard curl_multi_perform(multi, &running) == CURLM_OK else { return .failed("curl failed") }
      var left: CInt = 0
      while let message = curl_multi_info_read(multi, &left)?.pointee {
        guard message.msg == CURLMSG_DONE else { continue }
        return reply(message.data.result)
      }
      let rest = min(end, limit() ?? end) - .now
      guard rest > .zero else { return .failed("no response in time") }
      let milliseconds = min((rest / .milliseconds(1)).rounded(.up), 60_000)
      guard curl_multi_poll(multi, nil, 0, CInt(milliseconds), nil) == CURLM_OK else {
        return .failed("curl failed")
      }
    }
  }

  private func reply(_ code: CURLcode) -> CollectorReply {
    var status = 0
    _ = pictor_curl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
    guard !response.isHeadTooLong else { return .failed("too many header fields") }
    guard code == CURLE_OK || response.isCut, status > 0 else {
      return .failed("\(String(cString: curl_easy_strerror(code))) (\(code.rawValue))")
    }
    // Seconds, also for a date; 0 without the field.
    var wish: curl_off_t = 0
    _ = pictor_curl_get_offset(easy, CURLINFO_RETRY_AFTER, &wish)
    return .answered(
      status: status, retryAfter: wish > 0 ? Int(wish) : nil,
      rejected: PartialSuccess.rejected(response.bytes))
  }
}

/// The part of the collector's response that counts refused spans (`ExportTracePartialSuccess`).
struct PartialSuccess: Decodable {
  private struct Count: Decodable {
    let value: Int

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      // OTLP/JSON writes 64-bit integers as texts, and reads numbers, too.
      let number = try? container.decode(Int.self)
      value = try number ?? Int(container.decode(String.self)) ?? 0
    }
  }

  private struct Inner: Decodable {
    let rejectedSpans: Count?
  }

  private let partialSuccess: Inner?

  /// Returns how many spans a response refuses, at least 0; 0 for any other text.
  static func rejected(_ json: [UInt8]) -> Int {
    let found = try? JSONDecoder().decode(PartialSuccess.self, from: Data(json))
    return max(found?.partialSuccess?.rejectedSpans?.value ?? 0, 0)
  }
}
