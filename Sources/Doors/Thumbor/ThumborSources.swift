// ThumborSources: the source that the end of an address names.

import Core

/// Finds the URL of a source. thumbor takes a text without a scheme for `http`, imagor for `https`.
struct ThumborSources: Sendable {
  private let dialect: ThumborDialect
  private let rules: SourceRules

  init(_ dialect: ThumborDialect, _ options: DoorOptions) {
    self.dialect = dialect
    rules = SourceRules(options)
  }

  /// What the forms of sources become.
  static func rows(_ dialect: ThumborDialect) -> [DoorOptionRow] {
    let image = DoorOptionRow(names: ["IMAGE"], standing: .exact)
    guard dialect == .imagor else { return [image] }
    return [
      image, DoorOptionRow(names: ["b64:"], standing: .exact),
      DoorOptionRow(names: ["color:"], standing: .refused(Self.colourReason)),
      DoorOptionRow(names: ["/params/"], standing: .refused("addresses are not described")),
    ]
  }

  private static let colourReason = "images without a source are not made"

  /// Returns the URL of a source.
  ///
  /// - Parameter text: the source as it is written, decoded once; also imagor's `b64:`.
  func url(of text: String) throws(DoorAnswer) -> String {
    var name = text
    if dialect == .imagor, name.hasPrefix("color:") {
      throw dialect.refusal("color: " + Self.colourReason)
    }
    if dialect == .imagor, name.hasPrefix("b64:") {
      let digits = name.dropFirst(4).trimming { $0 == "/" }
      guard let bytes = Base64URL.decode(digits.prefix { $0 != "=" }),
        let plain = String(validating: bytes, as: UTF8.self), !plain.utf8.contains(0)
      else {
        throw dialect.refusal("b64: is not followed by base64url")
      }
      name = plain
    }
    do throws(SourceFault) {
      let replaced = try rules.replaced(name)
      let url = if let replaced { replaced } else { try absolute(name) }
      // What is no URL is refused with the rest of the query.
      if (try? SourceURL(parsing: url)) != nil { _ = try rules.allowed(url) }
      return url
    } catch {
      switch error {
      case .invalid(let reason): throw dialect.refusal(reason)
      case .forbidden(let reason): throw dialect.forbidden(reason)
      }
    }
  }

  private func absolute(_ name: String) throws(SourceFault) -> String {
    if let colon = name.utf8.firstIndex(of: UInt8(ascii: ":")), name[colon...].hasPrefix(":/"),
      colon > name.startIndex, name[..<colon].isPlain(with: "")
    {
      // Some proxies merge the two slashes.
      let rest = name[colon...].dropFirst(2)
      return rest.hasPrefix("/") ? name : name[..<colon] + "://" + rest
    }
    // thumbor has no host before a slash, and refuses it.
    let path = dialect == .thumbor && !rules.hasBase ? name[...] : name.drop { $0 == "/" }
    guard !path.isEmpty else { throw .invalid("the address has no image") }
    guard rules.hasBase else {
      return (dialect == .thumbor ? "http://" : "https://") + path
    }
    return try rules.appended(
      rules.isLocal ? PercentEncoding.encodePath(String(path)) : String(path))
  }
}
