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
    case .imgix: ImgixDoor(options)
    case .imaginary: ImaginaryDoor(options)
    }
  }

  /// How each option of the peer fares.
  var rows: [DoorOptionRow] {
    switch self {
    case .imgproxy: ImgproxyDoor.rows
    case .thumbor: ThumborDoor.rows
    case .imagor: ImagorDoor.rows
    case .nextjs: NextDoor.rows
    case .cloudflare: CloudflareDoor.rows
    case .weserv: WeservDoor.rows
    case .ipx: IPXDoor.rows
    case .imgix: ImgixDoor.rows
    case .imaginary: ImaginaryDoor.rows
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
  /// Returns the doors of a configuration: those of one host first, then the longest prefixes, and
  /// of one prefix those last that have all addresses below it.
  ///
  /// - Throws: `ConfigurationError` if a secret cannot be read, or if one door hides another.
  public static func places(
    of doors: [Peer: DoorSettings], environment: [String: String]
  ) throws(ConfigurationError) -> [DoorPlace] {
    var places: [DoorPlace] = []
    let greedy: Set<Peer> = [.imgproxy, .thumbor, .imagor, .imgix]
    let sorted = doors.sorted { left, right in
      // A host's own doors come before those of all hosts.
      func rank(_ door: (key: Peer, value: DoorSettings)) -> (Int, String, Int, Int, String) {
        (
          door.value.host.isEmpty ? 1 : 0, door.value.host, -door.value.prefix.utf8.count,
          greedy.contains(door.key) ? 1 : 0, door.key.rawValue
        )
      }
      return rank(left) < rank(right)
    }
    for (index, (peer, door)) in sorted.enumerated() {
      if index > 0, case let (other, before) = sorted[index - 1], greedy.contains(other),
        greedy.contains(peer), before.prefix == door.prefix, before.host == door.host
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
