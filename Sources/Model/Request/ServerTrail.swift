// ServerTrail: the servers that a request came through, so that none of them asks itself for ever (RFC 8586).

/// What a request's `CDN-Loop` field says (RFC 8586, section 2), with one more server for each it passes on its way.
public struct ServerTrail: Hashable, Sendable {
  /// The elements of the list as they came, the latest server last.
  public private(set) var elements: [String] = []

  /// Most servers that a request may come through; each makes the field longer.
  public static let mostServers = 32

  /// Nobody before this server.
  public init() {}

  /// Reads a field's value; several lines are one list (RFC 9110, section 5.3).
  ///
  /// A comma within a quoted parameter counts as one between servers: at worst there is an element more.
  public init(parsing value: String) {
    elements = value.split(separator: ",").map { Self.trimmed($0) }.filter { !$0.isEmpty }
  }

  /// Whether a server is among them. Names are compared without regard to case, as those of hosts are.
  public func names(_ server: String) -> Bool {
    let server = server.lowercased()
    return names.contains { $0.lowercased() == server }
  }

  /// Whether it may go no further: it came through this server, or through more than anyone has.
  public func isLoop(for server: String) -> Bool {
    elements.count > Self.mostServers || names(server)
  }

  /// The field's value for the next server; what came stays as it came (section 2).
  public func value(through server: String) -> String {
    (elements + [server]).joined(separator: ", ")
  }

  /// The same without parameters, which tell no server from another.
  public var bare: ServerTrail {
    var bare = self
    bare.elements = names
    return bare
  }

  /// Whether a `Via` field (RFC 9110, section 7.6.3) names a server: the second word of an element.
  public static func via(_ value: String, names server: String) -> Bool {
    let server = server.lowercased()
    return value.split(separator: ",").contains { element in
      let words = element.split { $0 == " " || $0 == "\t" }
      return words.count > 1 && words[1].lowercased() == server
    }
  }

  /// Whether a text can name a server: a token (RFC 9110, section 5.6.2), as `CDN-Loop` and `Via` both take it.
  public static func isName(_ text: String) -> Bool {
    text.utf8.count <= 64 && HeaderField.isName(text)
  }

  private var names: [String] {
    elements.map { Self.trimmed($0.prefix { $0 != ";" }) }
  }

  private static func trimmed(_ text: some StringProtocol) -> String {
    let isBlank = { (character: Character) in character == " " || character == "\t" }
    let tail = text.drop(while: isBlank)
    guard let last = tail.lastIndex(where: { !isBlank($0) }) else { return "" }
    return String(tail[...last])
  }
}
