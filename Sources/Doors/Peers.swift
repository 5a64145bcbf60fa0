// Peers: the door of each peer, where it stands, and the page about it.

import Core

extension Peer {
  /// Returns the peer's door.
  public func door(_ options: DoorOptions) -> any Door {
    switch self {
    case .imgproxy: ImgproxyDoor(options)
    case .thumbor: ThumborDoor(options)
    case .imagor: ImagorDoor(options)
    case .nextjs: NextDoor(options)
    case .cloudflare: CloudflareDoor(options)
    case .weserv: WeservDoor(options)
    case .ipx: IPXDoor(options)
    }
  }

  /// How each option of the peer fares.
  private var rows: [DoorOptionRow] {
    switch self {
    case .imgproxy: ImgproxyDoor.rows
    case .thumbor: ThumborDoor.rows
    case .imagor: ImagorDoor.rows
    case .nextjs: NextDoor.rows
    case .cloudflare: CloudflareDoor.rows
    case .weserv: WeservDoor.rows
    case .ipx: IPXDoor.rows
    }
  }

  /// The name of the peer for people.
  var title: String {
    switch self {
    case .nextjs: "Next.js"
    case .cloudflare: "Cloudflare"
    default: rawValue
    }
  }

  /// The page `docs/moving/PEER.md`: options that are exact in one line, a table of all others.
  var page: String {
    let exact = rows.filter { $0.standing == .exact }.map(\.text).joined(separator: ", ")
    let others = rows.filter { $0.standing != .exact }.map { row in
      let (word, reason) = row.standing.text
      return "| \(row.text) | \(word) | \(reason) |\n"
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
  /// Returns the doors of a configuration, in the order of `Peer`.
  ///
  /// - Throws: `ConfigurationError` if a secret cannot be read.
  public static func places(
    of doors: [Peer: DoorSettings], environment: [String: String]
  ) throws(ConfigurationError) -> [DoorPlace] {
    var places: [DoorPlace] = []
    for peer in Peer.allCases {
      guard let door = doors[peer] else { continue }
      let options = try door.resolved(of: peer, environment: environment)
      places.append(DoorPlace(peer.door(options), prefix: door.prefix))
    }
    return places
  }
}
