// ContentCodings: the content codings (RFC 9110, section 8.4.1) that are accepted although requests ask for `identity`.

import CCurl

/// The codings that this libcurl decodes. Only a single coding is accepted; several indicate
/// something other than an image.
enum ContentCodings {
  /// Names in lower case.
  static let decodable: Set<String> = {
    // curl owns the table, which lives as long as the process.
    guard let features = curl_version_info(CURLVERSION_FIRST)?.pointee.features else { return [] }
    func has(_ bit: Int32) -> Bool { features & bit != 0 }
    return Set(
      (has(CURL_VERSION_LIBZ) ? ["gzip", "x-gzip", "deflate"] : [])
        + (has(CURL_VERSION_BROTLI) ? ["br"] : []) + (has(CURL_VERSION_ZSTD) ? ["zstd"] : []))
  }()
}
