// ContentCodings: the content codings (RFC 9110, section 8.4.1) that a body may have though none was asked for.

import CCurl

/// What this libcurl decodes. One coding alone: what is coded several times is not an image by mistake.
enum ContentCodings {
  /// Names in lower case.
  static let decodable: Set<String> = {
    // The table is curl's own and lives as long as the program.
    guard let features = curl_version_info(CURLVERSION_FIRST)?.pointee.features else { return [] }
    func has(_ bit: Int32) -> Bool { features & bit != 0 }
    return Set(
      (has(CURL_VERSION_LIBZ) ? ["gzip", "x-gzip", "deflate"] : [])
        + (has(CURL_VERSION_BROTLI) ? ["br"] : []) + (has(CURL_VERSION_ZSTD) ? ["zstd"] : []))
  }()
}
