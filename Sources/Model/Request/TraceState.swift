// TraceState: limits and checks `tracestate` (W3C Trace Context, section 3.3).

/// Functions for the list that servers on the way keep in `tracestate`.
enum TraceState {
  /// The maximum length of a passed list, in bytes: what each server should pass (section 3.3.1.5).
  static let longest = 512
  /// The maximum number of members (section 3.3.1.1).
  static let most = 32
  /// Members beyond this length are left out first (section 3.3.1.5).
  private static let longMember = 128
  /// The maximum length of a key, and of a value (section 3.3.1.3).
  private static let longestPart = 256
  /// The maximum length of a tenant's name, in front of `@`.
  private static let longestTenant = 241
  /// The maximum length of a system's name behind `@`.
  private static let longestSystem = 14

  /// Returns the list to pass. Empty for a list with an invalid member, a key twice, or too many
  /// members. A list that is too long loses whole members: long ones first, then those at its end.
  static func passed(_ value: String) -> String {
    let members = value.utf8.split(separator: UInt8(ascii: ","), maxSplits: 4 * most).map {
      Array($0.trimming { $0.isBlank })
    }
    .filter { !$0.isEmpty }
    guard members.count <= most, members.allSatisfy(isValid),
      Set(members.map { Array(key(of: $0)) }).count == members.count
    else { return "" }
    var kept = members
    while length(of: kept) > longest {
      kept.remove(at: kept.lastIndex { $0.count > longMember } ?? kept.count - 1)
    }
    return kept.map { String(decoding: $0, as: UTF8.self) }.joined(separator: ",")
  }

  private static func length(of members: [[UInt8]]) -> Int {
    members.reduce(max(members.count - 1, 0)) { $0 + $1.count }
  }

  private static func key(of member: [UInt8]) -> ArraySlice<UInt8> {
    member.prefix { $0 != UInt8(ascii: "=") }
  }

  private static func isValid(_ member: [UInt8]) -> Bool {
    let key = key(of: member)
    let value = member.dropFirst(key.count + 1)
    return isKey(key) && (1...longestPart).contains(value.count)
      && value.allSatisfy { (0x20...0x7e).contains($0) && $0 != UInt8(ascii: "=") }
  }

  /// Whether a key is a system's name, or a tenant's and a system's with `@` between them. Only a
  /// tenant's name may begin with a digit (level 1, section 3.3.1.3.1).
  private static func isKey(_ key: ArraySlice<UInt8>) -> Bool {
    guard let sign = key.firstIndex(of: UInt8(ascii: "@")) else {
      return isName(key, longest: longestPart)
    }
    return isName(key[..<sign], longest: longestTenant, mayBeginWithDigit: true)
      && isName(key[(sign + 1)...], longest: longestSystem)
  }

  private static func isName(
    _ name: ArraySlice<UInt8>, longest: Int, mayBeginWithDigit: Bool = false
  ) -> Bool {
    guard let first = name.first, name.count <= longest else { return false }
    let isLower = { (byte: UInt8) in byte.isLetter && byte & 0x20 != 0 }
    return (isLower(first) || (mayBeginWithDigit && first.isDigit))
      && name.allSatisfy { isLower($0) || $0.isDigit || "_-*/".utf8.contains($0) }
  }
}
