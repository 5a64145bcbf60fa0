// ThumborSources: the source that the end of an address names.

import Core

/// Finds the URL of a source. thumbor takes a text without a scheme for `http`, imagor for `https`.
struct ThumborSources: Sendable {
  private let dialect: ThumborDialect
  private let baseURL: String
  private let replacements: [(beginning: SourcePrefix, text: String)]
  private let allowed: [SourcePrefix]

  init(_ dialect: ThumborDialect, _ options: DoorOptions) {
    self.dialect = dialect
    baseURL = options.baseURL
    replacements = options.replacements.map { (SourcePrefix($0.pattern), $0.text) }
    allowed = options.allowedSources.map { SourcePrefix($0) }
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
      guard let plain = ThumborSignature.decoded(digits), !plain.utf8.contains(0) else {
        throw dialect.refusal("b64: is not followed by base64url")
      }
      name = plain
    }
    name =
      replacements.lazy.compactMap { $0.beginning.replacing(in: name, with: $0.text) }.first ?? name
    let url = try absolute(name)
    guard allowed.isEmpty || isAllowed(url) else {
      throw dialect.forbidden("the source is not among those that may be loaded")
    }
    return url
  }

  private func absolute(_ name: String) throws(DoorAnswer) -> String {
    if let colon = name.utf8.firstIndex(of: UInt8(ascii: ":")), name[colon...].hasPrefix(":/"),
      colon > name.startIndex, name[..<colon].isPlain(with: "")
    {
      // Some proxies merge the two slashes.
      let rest = name[colon...].dropFirst(2)
      return rest.hasPrefix("/") ? name : name[..<colon] + "://" + rest
    }
    // thumbor has no host before a slash, and refuses it.
    let path = dialect == .thumbor && baseURL.isEmpty ? name[...] : name.drop { $0 == "/" }
    guard !path.isEmpty else { throw dialect.refusal("the address has no image") }
    guard !baseURL.isEmpty else {
      return (dialect == .thumbor ? "http://" : "https://") + path
    }
    guard
      !path.utf8.split(separator: UInt8(ascii: "/")).contains(where: Array("..".utf8).elementsEqual)
    else { throw dialect.refusal("the source leaves the base URL") }
    let slash = baseURL.hasSuffix("/") && baseURL != "local://" ? "" : "/"
    let isLocal = baseURL.hasPrefix("local://")
    return baseURL + slash + (isLocal ? PercentEncoding.encodePath(String(path)) : String(path))
  }

  private func isAllowed(_ url: String) -> Bool {
    guard let source = try? SourceURL(parsing: url) else { return false }
    return allowed.contains { $0.matches(source.text) }
  }
}
