// AccessLine: finds the address of a request in a line of an access log.

import FoundationEssentials

/// Reads the lines of access logs. Each line has its own format: JSON, or words of which some are
/// `name=value`, as in combined logs, logfmt, and what imgproxy and thumbor write.
enum AccessLine {
  /// The fields that have an address, perhaps in an object (Caddy, ECS, Google); the surest first.
  private enum Field: String, CaseIterable, CodingKey {
    case requestURI = "request_uri"
    case uri, requestUrl, original, url
    case httpURL = "http.url"
    case requestPath = "RequestPath"
    case request, httpRequest, http, path, msg, message
  }

  /// A line of JSON.
  private struct Object: Decodable {
    let address: String?

    init(from decoder: any Decoder) throws {
      let fields = try decoder.container(keyedBy: Field.self)
      address =
        Field.allCases.lazy.filter(fields.contains).compactMap { field in
          (try? fields.decode(String.self, forKey: field)).flatMap {
            AccessLine.address(in: $0.utf8)
          }
            ?? (try? fields.decode(Object.self, forKey: field))?.address
        }.first
    }
  }

  /// Returns the address of a line, a target or a URL; `nil` without one. It is empty where
  /// imgproxy tells the start of a request: the line about its end has the address, too.
  static func address(in line: some Collection<UInt8>) -> String? {
    if line.first == UInt8(ascii: "{") {
      return (try? JSONDecoder().decode(Object.self, from: Data(line)))?.address
    }
    var before = ""
    for word in line.split(whereSeparator: { $0 <= 0x20 }) {
      var word = String(decoding: word, as: UTF8.self)[...]
      let name = word.prefix { $0 != "=" && $0 != "/" }
      if word[name.endIndex...].first == "=" {
        guard Field(rawValue: String(name)) != nil else { continue }
        word = word[name.endIndex...].dropFirst().drop { $0 == "\"" }
      }
      if ["/", "http://", "https://"].contains(where: word.hasPrefix) {
        return before == "Started" ? "" : String(word.prefix { $0 != "\"" })
      }
      before = String(word)
    }
    return nil
  }
}
