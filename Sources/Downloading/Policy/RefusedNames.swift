// RefusedNames: the names whose addresses were refused, and which are remembered more briefly.

/// Names whose addresses were refused, from the moment when a socket is refused to the end of the hop.
/// Belongs to the transfer thread.
///
/// Addresses are remembered for longer than that a name does not exist. A refused name would be
/// answered faster than a name that does not exist, so it is remembered as briefly
/// (`NameTable.shorten`).
final class RefusedNames {
  private var names: Set<String> = []

  /// Maximum number of names. More are discarded together; their next answer comes faster.
  private static let limit = 4_096

  /// Records the name of a hop whose address was refused.
  func add(_ target: DownloadTarget) {
    guard target.isNamed else { return }
    if names.count >= Self.limit { names = [] }
    names.insert(target.hostAndPort)
  }

  /// Removes a name, in the form of `DownloadTarget.hostAndPort`. Returns whether it was there.
  func take(_ hostAndPort: String) -> Bool { names.remove(hostAndPort) != nil }
}
