// ImgproxyAddress: splits an address of imgproxy into signature, options and source.

import Core

/// The parts of `/SIGNATURE/OPTION/…/SOURCE`.
struct ImgproxyAddress {
  /// The signature, which is any text if addresses are not signed.
  let signature: Substring
  /// The paths that the signature may be of: as sent, and with the slashes that a proxy has merged.
  let signedPaths: [String]
  /// The options, decoded.
  private(set) var options: [String] = []
  /// The source, decoded.
  private(set) var source = ""
  /// The format behind the source; empty: none.
  private(set) var format: Substring = ""

  /// Splits a path.
  ///
  /// - Throws: why imgproxy has no such address.
  init(path: String, separator: Character, presetsOnly: Bool) throws(OptionFault) {
    let rest = path.dropFirst()
    guard path.utf8.first == UInt8(ascii: "/"), let slash = rest.firstIndex(of: "/") else {
      throw OptionFault("it has no options and no source")
    }
    signature = rest[..<slash]
    let sent = String(rest[slash...])
    let path = Self.restoringSlashes(of: sent)
    signedPaths = path == sent ? [path] : [path, sent]

    var parts = path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)[...]
    if presetsOnly { options.append(try Self.decoded(parts.popFirst() ?? "")) }
    while !presetsOnly, let part = parts.first, part != "plain" {
      let option = try Self.decoded(part)
      guard option.contains(separator) else { break }
      options.append(option)
      parts.removeFirst()
    }
    guard parts.first != "enc" else { throw OptionFault("imgproxy Pro: it is encrypted") }
    try parts.first == "plain" ? readPlain(parts.dropFirst()) : readEncoded(parts)
    guard !source.isEmpty else { throw OptionFault("it has no source") }
  }

  /// Reads `plain/SOURCE@FORMAT`.
  private mutating func readPlain(_ parts: ArraySlice<Substring>) throws(OptionFault) {
    let pieces = parts.joined(separator: "/").split(
      separator: "@", omittingEmptySubsequences: false)
    guard pieces.count <= 2 else { throw OptionFault("an @ of the source is %40") }
    source = try Self.decoded(pieces.first ?? "")
    if pieces.count == 2 { format = pieces[1] }
  }

  /// Reads base64url in any number of parts, `.FORMAT`, and `/NAME`, which is dropped.
  ///
  /// imgproxy knows from its configuration whether there is a name. Here, the last part is a name
  /// if one before it has the format, or if all parts together are no text.
  private mutating func readEncoded(_ parts: ArraySlice<Substring>) throws(OptionFault) {
    let unnamed = parts.dropLast()
    guard
      let found = (unnamed.contains { $0.contains(".") } ? nil : Self.text(of: parts))
        ?? Self.text(of: unnamed)
    else { throw OptionFault("the source is no base64url of a text") }
    source = found.source
    format = found.format
  }

  private static func text(
    of parts: ArraySlice<Substring>
  ) -> (source: String, format: Substring)? {
    let pieces = parts.joined().split(separator: ".", omittingEmptySubsequences: false)
    guard pieces.count <= 2, let first = pieces.first, let bytes = Base64URL.decode(first),
      !bytes.contains(where: { $0 < 0x20 || $0 == 0x7f }),
      let source = String(validating: bytes, as: UTF8.self)
    else { return nil }
    return (source, pieces.count == 2 ? pieces[1] : "")
  }

  private static func decoded(_ text: some StringProtocol) throws(OptionFault) -> String {
    guard let decoded = PercentEncoding.decode(Array(text.utf8)) else {
      throw OptionFault("'\(text.prefix(64))' is not percent-encoded UTF-8")
    }
    return decoded
  }

  /// Returns a path with the slashes behind the scheme of a plain source, where a proxy has merged
  /// them: `https:/example.com` and `local:/path`.
  private static func restoringSlashes(of path: String) -> String {
    let bytes = Array(path.utf8)
    let mark = Array("/plain/".utf8)
    guard
      let start = bytes.indices.first(where: {
        bytes[$0] == mark[0] && bytes[$0...].starts(with: mark)
      })
    else { return path }
    let source = bytes[(start + mark.count)...]
    let scheme = source.prefix { $0.isLetter || $0.isDigit || "+-.".utf8.contains($0) }
    let rest = source[scheme.endIndex...]
    guard !scheme.isEmpty, rest.starts(with: ":/".utf8), !rest.starts(with: "://".utf8) else {
      return path
    }
    let slashes = scheme.elementsEqual("local".utf8) ? "://" : ":/"
    return String(
      decoding: bytes[..<scheme.endIndex] + slashes.utf8 + rest.dropFirst(), as: UTF8.self)
  }
}
