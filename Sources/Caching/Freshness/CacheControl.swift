// CacheControl: the directives of a Cache-Control header (RFC 9111, section 5.2).

/// What an origin's `Cache-Control` says, unknown directives left out.
struct CacheControl: Equatable {
  /// `no-store`: not to be kept.
  var noStore = false
  /// `no-cache`: not to be served without asking. With field names it concerns those fields alone, and a cache may
  /// take it for the whole answer (section 5.2.2.4); so does this one.
  var noCache = false
  /// `private`: not for a shared cache; with field names as above.
  var isPrivate = false
  /// `must-revalidate`, or `proxy-revalidate`, which says the same to a shared cache: once stale, not to be served
  /// without asking (sections 5.2.2.2 and 5.2.2.8).
  var mustRevalidate = false
  /// `public`: for a shared cache though the request had credentials (section 5.2.2.9).
  var isPublic = false
  /// `must-understand`: a cache that knows what the status means need not hear `no-store` (section 5.2.2.3).
  var mustUnderstand = false
  /// `max-age` in seconds.
  var maxAge: Int?
  /// `s-maxage` in seconds: for shared caches, before `max-age`.
  var sharedMaxAge: Int?

  /// `stale-while-revalidate` in seconds (RFC 5861, section 3).
  var staleWhileRevalidate: Int?
  /// `stale-if-error` in seconds (RFC 5861, section 4).
  var staleIfError: Int?
  /// `immutable`: the same bytes for as long as they are fresh (RFC 8246).
  var immutable = false

  /// Whether no answer may be kept. What reaches this cache has a status that it knows.
  var forbidsStoring: Bool { noStore && !mustUnderstand || isPrivate }
  /// Whether a shared cache may keep the answer to a request with `Authorization` (section 3.5).
  var allowsAuthorized: Bool { isPublic || mustRevalidate || sharedMaxAge != nil }

  /// Whether anybody may have the answer stale: not where a directive forbids it, as `s-maxage` does too (sections
  /// 4.2.4 and 5.2.2.10), unless the origin itself says beside it how long (RFC 5861), which it says to the same caches.
  var mayBeStale: Bool { !mustRevalidate && !noCache && (sharedMaxAge == nil || saysHowStale) }
  /// Whether the origin says how stale its answer may be.
  var saysHowStale: Bool { staleWhileRevalidate != nil || staleIfError != nil }

  /// The largest number of seconds anybody needs, and what larger ones count as (RFC 9111, section 1.2.2).
  static let maximumSeconds = 1 << 31

  /// Nothing said.
  init() {}

  /// Reads a header value, or several joined by commas. Names are compared without their case, arguments may be
  /// quoted. An argument that is no number of seconds, or two that differ, means 0: stale (section 4.2.1).
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

  /// A number of seconds as delta-seconds have it; `nil` for anything but digits.
  static func seconds(_ text: some StringProtocol) -> Int? {
    guard !text.isEmpty, text.utf8.allSatisfy({ (0x30...0x39 as ClosedRange<UInt8>).contains($0) })
    else { return nil }
    return min(Int(text) ?? maximumSeconds, maximumSeconds)
  }

  private static func merge(_ earlier: Int?, _ argument: String?) -> Int {
    let value = argument.flatMap { seconds($0) } ?? 0
    return earlier.map { $0 == value ? value : 0 } ?? value
  }

  /// Splits `name[=token|="quoted"]` at commas; what cannot be read is skipped to the next comma.
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

    /// The text up to the first byte that does not match, without the white space at its end.
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

    /// A quoted string (RFC 9110, section 5.6.4); `nil`, and nothing taken, where none begins here or it never ends: what
    /// follows its comma is heard.
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
