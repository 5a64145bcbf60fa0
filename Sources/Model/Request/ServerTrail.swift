// ServerTrail: the servers that a request came through, to end loops (RFC 8586).

/// The content of a request's `CDN-Loop` field (RFC 8586, section 2), to which servers add names.
public struct ServerTrail: Hashable, Sendable {
  /// The elements of the list as received, the latest server last.
  public private(set) var elements: [String] = []

  /// The maximum number of servers that a request may come through. It bounds the field.
  public static let maximumServers = 32

  /// Creates an empty trail: no server came before this one.
  public init() {}

  /// Parses a field's value. Several lines form one list (RFC 9110, section 5.3).
  ///
  /// A comma in a quoted parameter counts as a separator. At worst this adds an element.
  public init(parsing value: String) {
    elements = value.split(separator: ",").map { String($0.trimmed) }.filter { !$0.isEmpty }
  }

  /// Whether the trail contains a server. Letter case does not count, as in host names.
  public func names(_ server: String) -> Bool {
    let server = server.lowercased()
    return names.contains { $0.lowercased() == server }
  }

  /// Whether the request must be refused: it came through this server, or through too many.
  public func isLoop(for server: String) -> Bool {
    elements.count > Self.maximumServers || names(server)
  }

  /// Returns the field's value for the next server. Received elements stay unchanged (section 2).
  public func value(through server: String) -> String {
    (elements + [server]).joined(separator: ", ")
  }

  /// Returns the trail without parameters, which do not identify a server.
  public var bare: ServerTrail {
    var bare = self
    bare.elements = names
    return bare
  }

  /// Returns whether a `Via` field (RFC 9110, section 7.6.3) names a server in an element.
  public static func via(_ value: String, names server: String) -> Bool {
    let server = server.lowercased()
    return value.split(separator: ",").contains { element in
      let words = element.split { $0 == " " || $0 == "\t" }
      return words.count > 1 && words[1].lowercased() == server
    }
  }

  /// Returns whether a text can name a server in `CDN-Loop` and `Via`: an RFC 9110 token.
  public static func isName(_ text: String) -> Bool {
    text.utf8.count <= 64 && HeaderField.isName(text)
  }

  private var names: [String] {
    elements.map { String($0.prefix { $0 != ";" }.trimmed) }
  }
}
