// HopName: the name that a hop connects to, and what curl is told about it.

import CCurl
import Model
import Platform

/// The name of the host that a hop connects to: the origin's, or its proxy's.
struct HopName: Hashable, Sendable {
  /// The name for the resolver: in lower case and ASCII, with the trailing dot that the URL has.
  let name: String
  private let port: Int
  /// The host in the two forms in which curl may look for it.
  private let hosts: Set<String>

  /// The name of an origin; `nil` if no resolver has to be asked for it.
  init?(_ target: DownloadTarget) {
    guard target.isNamed else { return nil }
    self.init(
      target.host, isRooted: target.url.host.hasSuffix("."), port: target.url.port)
  }

  /// The name of a proxy; `nil` if no resolver has to be asked for it.
  init?(proxy url: String) {
    guard let parts = curl_url() else { return nil }
    defer { curl_url_cleanup(parts) }
    guard curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK,
      let host = Self.part(CURLUPART_HOST, of: parts),
      let port = Self.part(CURLUPART_PORT, of: parts).flatMap({ Int($0) })
    else { return nil }
    let normal = HostPattern.normalized(host)
    guard DownloadTarget.isNamed(normal) else { return nil }
    self.init(normal, isRooted: host.hasSuffix("."), port: port)
  }

  private static func part(_ part: CURLUPart, of parts: OpaquePointer) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(parts, part, &text, UInt32(CURLU_DEFAULT_PORT)) == CURLUE_OK, let text else {
      return nil
    }
    defer { curl_free(text) }
    return String(cString: text)
  }

  private init(_ host: String, isRooted: Bool, port: Int) {
    name = isRooted ? host + "." : host
    hosts = [host, name]
    self.port = port
  }

  /// Whether this can be a name (RFC 1035, section 2.3.4; with underscores). Any other text is not
  /// passed to the resolver, and not to curl's table of names, where `*` stands for all hosts.
  var isValid: Bool {
    let labels = name.split(separator: ".", omittingEmptySubsequences: false)
    let isRooted = labels.last?.isEmpty == true
    return name.utf8.count <= 254
      && (isRooted ? labels.dropLast() : labels[...]).allSatisfy { label in
        (1...63).contains(label.utf8.count)
          && label.utf8.allSatisfy { byte in
            switch byte {
            case 0x61...0x7a, 0x30...0x39, 0x2d, 0x5f: true
            default: false
            }
          }
      }
  }

  /// Returns lines for curl's table of names (`CURLOPT_RESOLVE`). curl drops them some time after the
  /// hop, because of the `+`.
  func lines(_ addresses: [IPAddress]) -> [String] {
    let list = addresses.map { address in
      if case .v6 = address { "[\(address)]" } else { "\(address)" }
    }
    return hosts.sorted().map { "+\($0):\(port):\(list.joined(separator: ","))" }
  }
}
