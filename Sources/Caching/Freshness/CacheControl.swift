// CacheControl: the directives of a Cache-Control header (RFC 9111, section 5.2).

/// The directives of an origin's `Cache-Control` header. Unknown directives are ignored.
struct CacheControl: Equatable {
  /// `no-store`: the response must not be stored.
  var noStore = false
  /// `no-cache`: the response must be revalidated before each use. With field names it covers only
  /// those fields. A cache may treat it as unqualified (section 5.2.2.4), and this one does.
  var noCache = false
  /// `private`: a shared cache must not store the response. Field names are ignored, as for
  /// `no-cache`.
  var isPrivate = false
  /// `must-revalidate`, or `proxy-revalidate`, which is equivalent for a shared cache: a stale
  /// response must not be served without revalidation (sections 5.2.2.2 and 5.2.2.8).
  var mustRevalidate = false
  /// `public`: a shared cache may store the response to a request with credentials (section
  /// 5.2.2.9).
  var isPublic = false
  /// `must-understand`: a cache that understands the status code ignores `no-store` (section
  /// 5.2.2.3).
  var mustUnderstand = false
  /// `max-age` in seconds.
  var maxAge: Int?
  /// `s-maxage` in seconds: overrides `max-age` in shared caches.
  var sharedMaxAge: Int?

  /// `stale-while-revalidate` in seconds (RFC 5861, section 3).
  var staleWhileRevalidate: Int?
  /// `stale-if-error` in seconds (RFC 5861, section 4).
  var staleIfError: Int?
  /// `immutable`: the body does not change while the response is fresh (RFC 8246).
  var immutable = false

  /// Whether the response must not be stored. `must-understand` overrides `no-store`, because every
  /// status code that reaches this cache is understood.
  var forbidsStoring: Bool { noStore && !mustUnderstand || isPrivate }
  /// Whether a shared cache may store the response to a request with `Authorization` (section 3.5).
  var allowsAuthorized: Bool { isPublic || mustRevalidate || sharedMaxAge != nil }

  /// Whether a stale response may be served. Directives can forbid it, and `s-maxage` implies
  /// `proxy-revalidate` (sections 4.2.4 and 5.2.2.10). A time of RFC 5861 beside `s-maxage` allows
  /// it, because both address shared caches.
  var mayBeStale: Bool { !mustRevalidate && !noCache && (sharedMaxAge == nil || saysHowStale) }
  /// Whether the origin states a time of RFC 5861.
  var saysHowStale: Bool { staleWhileRevalidate != nil || staleIfError != nil }

  /// The largest number of seconds; larger numbers count as this one (RFC 9111, section 1.2.2).
  static let maximumSeconds = 1 << 31

  /// Creates a value without directives.
  init() {}

  /// Parses one header value, or several joined by commas. Names are case-insensitive, and
  /// arguments may be quoted. An invalid number of seconds, or two different ones, counts as 0,
  /// that is stale (section 4.2.1).
  init(_ value: String) {
    var scanner = Scanner(rest: Substring(value).utf8)
    while let (name, argument) = scanner.next() {
      switch name {
      case "no-store": noStore = true
      case "no-cache": noCache = true
      case "private": isPrivate = true
      case "public": isPublic = true
      case "must-understand": mustUnderstand = true
      case "must-revalidate", "proxy-revalidate": mustRevalidate = true
      case "max-age": maxAge = Self.merge(maxAge, argument)
      case "s-maxage": sharedMaxAge = Self.merge(sharedMaxAge, argument)
      case "stale-while-revalidate":
        staleWhileRevalidate = Self.merge(staleWhileRevalidate, argument)
      case "stale-if-error": staleIfError = Self.merge(staleIfError, argument)
      case "immutable": immutable = true
      default: break
      }
    }
  }

  /// Parses delta-seconds. Returns `nil` unless the text consists of digits.
  static func seconds(_ text: some StringProtocol) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39 as ClosedRange<UInt8>).contains($0) })
    else { return nil }
    return min(Int(text) ?? maximumSeconds, maximumSeconds)
  }

  private static func merge(_ earlier: Int?, _ argument: String?) -> Int {
    let value = argument.flatMap { seconds($0) } ?? 0
    return earlier.map { $0 == value ? value : 0 } ?? value
  }

  /// Splits `name[=token|="quoted"]` at commas. Malformed text is skipped up to the next comma.
  private struct Scanner {
    var rest: Substring.UTF8View

    mutating func next() -> (name: String, argument: String?)? {
      while true {
        skip { $0 == UInt8(ascii: ",") || $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
        guard !rest.isEmpty else { return nil }
        let name = take { $0 != UInt8(ascii: ",") && $0 != UInt8(ascii: "=") }
        var argument: String?
        if rest.first == UInt8(ascii: "=") {
          rest.removeFirst()
          skip { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
          argument = quoted() ?? take { $0 != UInt8(ascii: ",") }
        }
        _ = take { $0 != UInt8(ascii: ",") }
        if !name.isEmpty { return (name.lowercased(), argument) }
      }
    }

    private mutating func skip(while matches: (UInt8) -> Bool) {
      rest = rest.drop(while: matches)
    }

    /// Takes the text up to the first byte that does not match, without trailing white space.
    private mutating func take(while matches: (UInt8) -> Bool) -> String {
      let text = rest.prefix(while: matches)
      rest = rest[text.endIndex...]
      var end = text.endIndex
      while end > text.startIndex {
        let before = text.index(before: end)
        guard text[before] == UInt8(ascii: " ") || text[before] == UInt8(ascii: "\t") else { break }
        end = before
      }
      return String(decoding: text[..<end], as: UTF8.self)
    }

    /// Takes a quoted string (RFC 9110, section 5.6.4). Returns `nil` and takes nothing if no
    /// string starts here or if it has no end. Directives after the next comma are then still read.
    private mutating func quoted() -> String? {
      var text = rest
      guard text.popFirst() == UInt8(ascii: "\"") else { return nil }
      var bytes: [UInt8] = []
      while let byte = text.popFirst() {
        if byte == UInt8(ascii: "\"") {
          rest = text
          return String(decoding: bytes, as: UTF8.self)
        }
        if byte == UInt8(ascii: "\\"), let escaped = text.popFirst() {
          bytes.append(escaped)
        } else {
          bytes.append(byte)
        }
      }
      return nil
    }
  }
}
