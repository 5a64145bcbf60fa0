// Door: the port to the addresses of other image servers.

/// Where a request knocks, without the prefix of its door, as sent: percent-encoded.
public struct DoorAddress: Hashable, Sendable {
  /// The path; begins with `/`.
  public let path: String
  /// The query, without its `?`; empty without a query.
  public let query: String

  /// Creates an address.
  public init(path: String, query: String = "") {
    self.path = path
    self.query = query
  }
}

/// How an option of a peer fares here.
public enum DoorStanding: Hashable, Sendable {
  /// The result is the peer's, within its rounding.
  case exact
  /// The result differs; the text says how.
  case near(String)
  /// The option changes nothing that matters here; the text says why.
  case ignored(String)
  /// The address is refused; the text says why.
  case refused(String)
}

/// An option that an address has, and that is not exact.
public struct DoorNote: Hashable, Sendable {
  /// The option as the peer names it.
  public let option: String
  /// How it fares.
  public let standing: DoorStanding

  /// Creates a note.
  public init(_ option: String, _ standing: DoorStanding) {
    self.option = option
    self.standing = standing
  }
}

extension DoorStanding {
  /// The word for it, and why.
  public var text: (word: String, reason: String) {
    switch self {
    case .exact: ("exact", "")
    case .near(let reason): ("near", reason)
    case .ignored(let reason): ("ignored", reason)
    case .refused(let reason): ("refused", reason)
    }
  }
}

extension DoorNote: CustomStringConvertible {
  /// The option and how it fares, for people.
  public var description: String {
    "\(standing.text.word) \(option)" + (standing.text.reason.isEmpty ? "" : ": ")
      + standing.text.reason
  }
}

/// What an address asks for, in Pictor's own parameters.
public struct DoorTranslation: Hashable, Sendable {
  /// A parameter of `/image`, with its value decoded.
  public struct Parameter: Hashable, Sendable {
    /// The name of the parameter.
    public let name: String
    /// Its value.
    public let value: String
  }

  /// The parameters, each once.
  public private(set) var parameters: [Parameter] = []
  /// What is not exact.
  public var notes: [DoorNote] = []
  /// Whether a signature of the peer's kind was verified.
  public var isSigned = false
  /// From when on the address is refused; `nil`: never.
  public var expiry: UnixTime?
  /// Whether a failure leads to the source instead, which then must be one of the operator's: else
  /// the door would send visitors anywhere.
  public var redirectsFailures = false
  /// Whether a description of the source is asked for, in place of an image.
  public var isDescription = false

  /// Nothing is asked for yet.
  public init() {}

  /// Reads a value, or sets it in place of an earlier one; `nil` removes it.
  public subscript(name: String) -> String? {
    get { parameters.first { $0.name == name }?.value }
    set {
      parameters.removeAll { $0.name == name }
      if let newValue { parameters.append(Parameter(name: name, value: newValue)) }
    }
  }

  /// The query of `/image`, or of `/info` for a description, percent-encoded.
  public var query: String {
    parameters.filter { !isDescription || $0.name == "url" }.map {
      $0.name + "=" + PercentEncoding.encode($0.value)
    }.joined(separator: "&")
  }
}

/// A secret that requests carry in a field.
public struct DoorSecret: Hashable, Sendable {
  /// The name of the field.
  public let field: String
  /// Its possible values.
  public let values: [[UInt8]]
  /// What a request without one of them gets.
  public let refusal: DoorAnswer

  /// Creates a secret.
  public init(_ field: String, _ values: [[UInt8]], refusal: DoorAnswer) {
    self.field = field
    self.values = values
    self.refusal = refusal
  }
}

/// A response without an image, in the peer's own form.
public struct DoorAnswer: Error, Hashable, Sendable {
  /// The HTTP status.
  public let status: Int
  /// The value of `Content-Type`.
  public let contentType: String
  /// The body.
  public let body: String
  /// Fields beside those of every response.
  public let fields: [HeaderField]
  /// Why, for the log and for `pictor translate`: the option, its value, and what is allowed.
  public let reason: String

  /// Creates an answer.
  public init(
    status: Int, contentType: String = "text/plain", body: String, fields: [HeaderField] = [],
    reason: String
  ) {
    self.status = status
    self.contentType = contentType
    self.body = body
    self.fields = fields
    self.reason = reason
  }
}

/// The addresses of another image server. A door is a pure function: nothing behind it knows peers,
/// and two doors that ask for the same pixels share the variant.
public protocol Door: Sendable {
  /// The peer, by its name in `doors`.
  var name: String { get }
  /// The field in which the peer says `HIT`, `MISS` or `STALE`; `nil`: none.
  var cacheField: StaticString? { get }
  /// Whether an address without a source means the body of a POST.
  var takesBodies: Bool { get }
  /// Whether the address is one of the peer's. All others get 404 from Pictor.
  func claims(_ address: DoorAddress) -> Bool
  /// Returns what a field of a request must say, before anything else counts; `nil`: nothing.
  func secret(of address: DoorAddress) -> DoorSecret?
  /// Translates an address.
  ///
  /// - Throws: the refusal, in the peer's form.
  func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation
  /// Returns what the peer answers to a failure.
  func answer(to error: ImageError) -> DoorAnswer
}

extension Door {
  /// Most peers have no such field.
  public var cacheField: StaticString? { nil }
  /// Most peers have no secrets.
  public func secret(of address: DoorAddress) -> DoorSecret? { nil }
  /// Most peers load their sources.
  public var takesBodies: Bool { false }

  /// Translates an address.
  ///
  /// - Throws: `refusedAtDoor`.
  public func translated(_ address: DoorAddress) throws(ImageError) -> DoorTranslation {
    do throws(DoorAnswer) { return try translate(address) } catch { throw .refusedAtDoor(error) }
  }

  /// Returns the peer's answer to a failure, or the door's own refusal.
  public func reply(to error: ImageError) -> DoorAnswer {
    if case .refusedAtDoor(let answer) = error { answer } else { answer(to: error) }
  }
}

/// A door, and where it stands.
public struct DoorPlace: Sendable {
  /// The door.
  public let door: any Door
  /// What precedes the peer's own paths: empty, or a path without a slash at its end.
  public let prefix: String
  /// The host in lower case that requests name in `Host`, without a port; empty: any.
  public let host: String

  /// Creates a place.
  public init(_ door: any Door, prefix: String = "", host: String = "") {
    self.door = door
    self.prefix = prefix
    self.host = host
  }

  /// Returns the address at this door; `nil` if the peer has no such address.
  ///
  /// - Parameters:
  ///   - path: the path as sent.
  ///   - query: the query as sent.
  ///   - host: the host that the request names, if a door has it.
  public func address(
    path: some Collection<UInt8>, query: some Collection<UInt8>, host: String = ""
  ) -> DoorAddress? {
    guard self.host.isEmpty || self.host == host, path.starts(with: prefix.utf8),
      let rest = String(validating: path.dropFirst(prefix.utf8.count), as: UTF8.self),
      rest.utf8.first == UInt8(ascii: "/"), let query = String(validating: query, as: UTF8.self)
    else { return nil }
    let address = DoorAddress(path: rest, query: query)
    return door.claims(address) ? address : nil
  }
}
