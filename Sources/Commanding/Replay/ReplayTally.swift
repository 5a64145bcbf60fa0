// ReplayTally: counts how the requests of an access log fare at a door.

import Core

/// The requests of a log, by how their addresses fare.
struct ReplayTally {
  /// The most distinct addresses that are kept; others count as requests only.
  static let limit = 1_000_000

  /// The number of requests, and of the distinct addresses that they are for.
  typealias Share = SIMD2<Int>

  /// The door, without its prefix.
  let place: DoorPlace
  /// What may precede the peer's own addresses.
  let prefix: String
  /// How each address fares: `exact`, `near` if it has notes, `refused`, or `skipped`: not the
  /// peer's.
  private(set) var fates: [String: (word: String, notes: [DoorNote])] = [:]
  private(set) var shares: [String: Share] = [:]
  /// What is not exact, each with the first of its reasons.
  private(set) var options: [String: (note: DoorNote, share: Share)] = [:]
  private(set) var lines = 0
  private(set) var linesWithout = 0

  init(_ place: DoorPlace, prefix: String) {
    self.place = place
    self.prefix = prefix
  }

  /// Counts the request of a line.
  mutating func add(_ line: some Collection<UInt8>) {
    lines += 1
    guard let text = AccessLine.address(in: line) else {
      linesWithout += 1
      return
    }
    if text.isEmpty { return }
    let target = DoorPlace.target(of: text)
    let isBehind = !prefix.isEmpty && target.hasPrefix(prefix + "/")
    let address = String(isBehind ? target.dropFirst(prefix.count) : target)
    let known = fates[address]
    let fate = known ?? translated(address)
    let isNew = known == nil && fates.count < Self.limit
    if isNew { fates[address] = fate }
    let share = Share(1, isNew ? 1 : 0)
    shares[fate.word, default: .zero] &+= share
    for note in fate.notes {
      options[note.standing.text.word + note.option, default: (note, .zero)].share &+= share
    }
  }

  private func translated(_ address: String) -> (word: String, notes: [DoorNote]) {
    guard let knock = place.address(in: address[...]) else { return ("skipped", []) }
    do throws(DoorAnswer) {
      let notes = try place.door.translate(knock).notes
      return (notes.isEmpty ? "exact" : "near", notes)
    } catch {
      // `NAME: why`, `NAME='value': why`, or a sentence.
      let parts = error.reason.split(separator: ": ", maxSplits: 1)
      let option = parts.count > 1 ? parts[0].prefix { $0 != "=" } : "address"
      return ("refused", [DoorNote(String(option), .refused(String(parts.last ?? "")))])
    }
  }

  /// Returns what an address is here and its notes, a line each.
  func translation(of address: String) -> String {
    let query = place.address(in: address[...]).flatMap { try? place.door.translate($0).query }
    let notes = fates[address]?.notes.map(\.description) ?? []
    return ((query.map { ["/image?" + $0] } ?? []) + notes).joined(separator: "\n")
  }

  /// Returns up to `count` addresses of the peer, evenly from all in their order.
  func sample(_ count: Int) -> [String] {
    let all = fates.filter { $0.value.word != "skipped" }.keys.sorted()
    return all.count <= count ? all : (0..<count).map { all[$0 * all.count / count] }
  }
}
