// Peers: the door of each peer, where it stands, and the page about it.

import Core

/// A door of a peer.
protocol PeerDoor: Door {
  /// How each option of the peer fares.
  var rows: [DoorOptionRow] { get }
  /// Reads an address.
  func read(_ address: DoorAddress) throws(DoorFault) -> DoorTranslation
  /// Returns the peer's answer to a fault.
  func refusal(of fault: DoorFault) -> DoorAnswer
  /// Returns the peer's status and message for a failure.
  func status(of error: ImageError) -> (Int, String)
  /// Returns an answer in the peer's form; by default the message is the body.
  func answer(_ status: Int, _ message: String, reason: String) -> DoorAnswer
}

extension PeerDoor {
  func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    do { return try read(address) } catch { throw error.answer ?? refusal(of: error) }
  }

  func answer(to error: ImageError) -> DoorAnswer {
    let (status, message) = status(of: error)
    return answer(status, message, reason: error.message)
  }

  func answer(_ status: Int, _ message: String, reason: String) -> DoorAnswer {
    DoorAnswer(status: status, body: message, reason: reason)
  }
}

extension Peer {
  /// Returns the peer's door.
  func door(_ options: DoorOptions) -> any PeerDoor {
    switch self {
    case .imgproxy: ImgproxyDoor(options)
    case .thumbor, .imagor: ThumborDoor(self, options)
    case .nextjs: NextDoor(options)
    case .cloudflare: CloudflareDoor(options)
    case .weserv: WeservDoor(options)
    case .ipx: IPXDoor(options)
    case .imgix: ImgixDoor(options)
    case .imaginary: ImaginaryDoor(options)
    }
  }

  /// How each option of the peer fares.
  var rows: [DoorOptionRow] { door(DoorOptions()).rows }

  /// The name of the peer for people.
  private var title: String {
    self == .nextjs ? "Next.js" : self == .cloudflare ? "Cloudflare" : rawValue
  }

  /// The page `docs/moving/PEER.md`: options that are exact in one line, a table of all others.
  var page: String {
    let exact = rows.filter { $0.standing == .exact }.map(\.text).joined(separator: ", ")
    let others = rows.filter { $0.standing != .exact }.map { row in
      "| \(row.text) | \(row.standing.text.word) | \(row.standing.text.reason) |\n"
    }
    return """
      # Moving from \(title)

      The door `\(rawValue)` ([how doors work](../moving.md)). `make generated` writes this page from its table of options.

      Exact: \(exact).

      | Option | | |
      | --- | --- | --- |
      \(others.joined())
      """
  }
}

extension DoorOptionRow {
  /// The names, as code.
  fileprivate var text: String {
    names.map { "`\($0.replacing("|", with: "\\|"))`" }.joined(separator: " ")
  }
}

extension DoorPlace {
  /// Returns the doors of a configuration: those of one host first, then the longest prefixes, and
  /// of one prefix those last that have all addresses below it.
  ///
  /// - Throws: `ConfigurationError` if a secret cannot be read, or if one door hides another.
  public static func places(
    of doors: [Peer: DoorSettings], environment: [String: String]
  ) throws(ConfigurationError) -> [DoorPlace] {
    let greedy: Set<Peer> = [.imgproxy, .thumbor, .imagor, .imgix]
    func rank(_ peer: Peer, _ door: DoorSettings) -> (Int, String, Int, Int, String) {
      (
        door.host.isEmpty ? 1 : 0, door.host, -door.prefix.utf8.count,
        greedy.contains(peer) ? 1 : 0, peer.rawValue
      )
    }
    let sorted = doors.sorted { rank($0.key, $0.value) < rank($1.key, $1.value) }
    var places: [DoorPlace] = []
    for (index, (peer, door)) in sorted.enumerated() {
      if index > 0, case let (other, before) = sorted[index - 1], greedy.contains(other),
        greedy.contains(peer), (before.prefix, before.host) == (door.prefix, door.host)
      {
        throw ConfigurationError(
          at: "doors.\(peer.rawValue)",
          "it needs another prefix than \(other.rawValue), which has all addresses there")
      }
      let options = try door.resolved(of: peer, environment: environment)
      places.append(DoorPlace(peer.door(options), prefix: door.prefix, host: door.host))
    }
    return places
  }
}
