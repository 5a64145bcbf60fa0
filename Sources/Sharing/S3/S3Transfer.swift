// S3Transfer: one request in libcurl, with its callbacks.

import CCurl
import Glibc
import Model
import Platform
import Signing

/// A request on its way. Belongs to the bucket's thread.
final class S3Transfer {
  /// The most bytes of header fields, and of an error's body.
  private static let headLimit = 64 << 10
  private static let errorLimit = 4 << 10

  let request: S3Request
  let ticket: RequestBreaker.Ticket
  /// curl's handle, valid as long as this object.
  let easy: UnsafeMutableRawPointer
  private let budget: ByteBudget
  private let entryLimit: Int
  /// curl keeps a pointer to it.
  private var fields: UnsafeMutablePointer<curl_slist>?
  private var answer = S3Answer()
  private var headLength = 0
  private var errorBody: [UInt8] = []
  private var file: MemoryFile?
  private var lease: ByteLease?
  /// How much of a write is with curl.
  private var sent = 0

  /// Prepares a request. Returns `nil` if curl has no memory.
  init?(
    _ request: S3Request, _ ticket: RequestBreaker.Ticket, _ configuration: S3Configuration,
    budget: ByteBudget
  ) {
    guard let easy = curl_easy_init() else { return nil }
    self.request = request
    self.ticket = ticket
    self.easy = easy
    self.budget = budget
    entryLimit = configuration.settings.entryLimit
    for line in request.fields(configuration, at: .now) {
      // `deinit` frees what there is.
      guard let longer = curl_slist_append(fields, line) else { return nil }
      fields = longer
    }
    guard configure(configuration) else { return nil }
  }

  deinit {
    curl_easy_cleanup(easy)
    curl_slist_free_all(fields)
  }

  // MARK: Options

  private func set(_ option: CURLoption, _ value: Int) -> Bool {
    pictor_curl_set_long(easy, option, value) == CURLE_OK
  }

  private func set(_ option: CURLoption, _ value: String) -> Bool {
    pictor_curl_set_string(easy, option, value) == CURLE_OK
  }

  private func configure(_ configuration: S3Configuration) -> Bool {
    // The owner keeps this object until curl has given the handle back.
    let target = Unmanaged.passUnretained(self).toOpaque()
    return setOptions(configuration) && setReceiving(target)
      && (request.isRead || setSending(target))
  }

  private func setOptions(_ configuration: S3Configuration) -> Bool {
    let caFile = configuration.settings.caFile
    return set(CURLOPT_NOSIGNAL, 1) && set(CURLOPT_PROTOCOLS_STR, "http,https")
      && set(CURLOPT_URL, configuration.base + request.path) && set(CURLOPT_PATH_AS_IS, 1)
      && set(CURLOPT_USERAGENT, "Pictor/\(pictorVersion)")
      && set(CURLOPT_HTTP_VERSION, Int(CURL_HTTP_VERSION_1_1))
      && set(CURLOPT_FOLLOWLOCATION, 0) && set(CURLOPT_NETRC, Int(CURL_NETRC_IGNORED.rawValue))
      // Empty: no proxy from the environment either.
      && set(CURLOPT_PROXY, "") && set(CURLOPT_SSLVERSION, Int(CURL_SSLVERSION_TLSv1_2))
      // A name server that does not answer must not delay the thread.
      && set(CURLOPT_QUICK_EXIT, 1)
      // The file alone: curl would trust the system's folder as well.
      && pictor_curl_set_pointer(easy, CURLOPT_CAPATH, nil) == CURLE_OK
      && (caFile.isEmpty || set(CURLOPT_CAINFO, caFile))
      && pictor_curl_set_pointer(easy, CURLOPT_HTTPHEADER, fields) == CURLE_OK
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

  private func setReceiving(_ target: UnsafeMutableRawPointer) -> Bool {
    pictor_curl_set_pointer(easy, CURLOPT_WRITEDATA, target) == CURLE_OK
      && pictor_curl_set_write_function(
        easy, CURLOPT_WRITEFUNCTION,
        { bytes, size, count, context in
          guard let bytes, let context else { return 0 }
          let transfer = Unmanaged<S3Transfer>.fromOpaque(context).takeUnretainedValue()
          let piece = UnsafeRawBufferPointer(start: bytes, count: size * count)
          return transfer.take(piece) ? size * count : 0
        }) == CURLE_OK
      && pictor_curl_set_pointer(easy, CURLOPT_HEADERDATA, target) == CURLE_OK
      && pictor_curl_set_write_function(
        easy, CURLOPT_HEADERFUNCTION,
        { _, size, count, context in
          guard let context else { return 0 }
          let transfer = Unmanaged<S3Transfer>.fromOpaque(context).takeUnretainedValue()
          return transfer.takeField(size * count) ? size * count : 0
        }) == CURLE_OK
  }

  private func setSending(_ target: UnsafeMutableRawPointer) -> Bool {
    set(CURLOPT_UPLOAD, 1) && set(CURLOPT_INFILESIZE, request.count)
      && pictor_curl_set_pointer(easy, CURLOPT_READDATA, target) == CURLE_OK
      && pictor_curl_set_read_function(
        easy,
        { buffer, size, count, context in
          guard let buffer, let context else { return Int(CURL_READFUNC_ABORT) }
          let transfer = Unmanaged<S3Transfer>.fromOpaque(context).takeUnretainedValue()
          let space = UnsafeMutableRawBufferPointer(start: buffer, count: size * count)
          return transfer.give(space) ?? Int(CURL_READFUNC_ABORT)
        }) == CURLE_OK
      // A kept connection may have ended: curl begins again on another one.
      && pictor_curl_set_pointer(easy, CURLOPT_SEEKDATA, target) == CURLE_OK
      && pictor_curl_set_seek_function(
        easy,
        { context, offset, origin in
          guard let context, origin == SEEK_SET else { return CInt(CURL_SEEKFUNC_CANTSEEK) }
          Unmanaged<S3Transfer>.fromOpaque(context).takeUnretainedValue().sent = Int(offset)
          return CInt(CURL_SEEKFUNC_OK)
        }) == CURLE_OK
  }

  // MARK: Callbacks

  /// Returns how many bytes of the body are in `space`; `nil` ends the transfer.
  private func give(_ space: UnsafeMutableRawBufferPointer) -> Int? {
    guard case .write(let body, _) = request.work else { return nil }
    let count = body.copy(at: sent, to: space)
    sent += count
    return count
  }

  /// Returns whether curl continues.
  private func takeField(_ length: Int) -> Bool {
    headLength += length
    if headLength > Self.headLimit { answer.stop = .headTooLong }
    return answer.stop == nil
  }

  /// Returns whether curl continues.
  private func take(_ piece: UnsafeRawBufferPointer) -> Bool {
    var status = 0
    guard pictor_curl_get_long(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK else {
      return false
    }
    guard request.isRead, status == 200 else {
      errorBody += piece.prefix(Self.errorLimit - errorBody.count)
      if errorBody.count == Self.errorLimit { answer.stop = .errorTooLong }
      return answer.stop == nil
    }
    return (file != nil || makeRoom()) && append(piece)
  }

  /// Prepares the file for the body, whose length is declared.
  private func makeRoom() -> Bool {
    var length: curl_off_t = -1
    _ = pictor_curl_get_offset(easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &length)
    guard length > 0 else {
      answer.stop = .noLength
      return false
    }
    guard length <= entryLimit else {
      answer.stop = .tooLarge
      return false
    }
    answer.expected = Int(length)
    lease = budget.lease(Int(length))
    if lease != nil { file = try? MemoryFile(name: "pictor-s3") }
    if file == nil { answer.stop = .noRoom }
    return file != nil
  }

  private func append(_ piece: UnsafeRawBufferPointer) -> Bool {
    // Also if curl should pass on more than is declared.
    guard let expected = answer.expected, answer.received + piece.count <= expected,
      (try? file?.append(piece)) != nil
    else {
      answer.stop = answer.stop ?? .noRoom
      return false
    }
    answer.received += piece.count
    return true
  }

  // MARK: End

  /// Returns the outcome after curl has ended the transfer.
  func end(_ code: CURLcode) -> (S3Request.Outcome, RequestBreaker.Verdict, detail: String?) {
    var status = 0
    _ = pictor_curl_get_long(easy, CURLINFO_RESPONSE_CODE, &status)
    answer.status = status
    answer.code = AWSErrorCode.find(in: errorBody)
    if code != CURLE_OK {
      answer.failure = "\(String(cString: curl_easy_strerror(code))) (\(code.rawValue))"
    }
    let (meaning, verdict, detail) = answer.meaning(for: request.isRead ? .read : .write)
    switch meaning {
    case .absent: return (.absent, verdict, detail)
    case .written: return (.written, verdict, detail)
    case .failed: return (.failed, verdict, detail)
    case .found:
      guard let file = file.take(), let region = try? file.sealed(lease: lease) else {
        return (.failed, .alive, nil)
      }
      return (.found(region), verdict, detail)
    }
  }
}
