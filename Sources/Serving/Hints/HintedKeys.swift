// HintedKeys: the cache keys of one target for the client hints that were seen last.

import Model

/// A short list of keys. A new one takes the place of the oldest beyond `limit`.
struct HintedKeys {
  private struct Place {
    let hints: ClientHints
    let formats: AcceptedFormats
    let key: CacheKey
  }

  /// The most keys of a target.
  static let limit = 16

  private var places: [Place] = []
  private var next = 0

  /// Returns the key of these hints and formats, if it was kept. Does not allocate.
  func key(for hints: ClientHints, _ formats: AcceptedFormats) -> CacheKey? {
    for place in places where place.hints == hints && place.formats == formats { return place.key }
    return nil
  }

  /// Keeps a key.
  mutating func keep(_ key: CacheKey, for hints: ClientHints, _ formats: AcceptedFormats) {
    let place = Place(hints: hints, formats: formats, key: key)
    if places.count < Self.limit {
      places.append(place)
    } else {
      places[next] = place
      next = (next + 1) % Self.limit
    }
  }
}
