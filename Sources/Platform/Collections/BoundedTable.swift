// BoundedTable: a dictionary in insertion order that forgets its oldest entry at a limit.

/// A dictionary with a limit. It keeps the order in which its keys were added, and a new key evicts
/// the oldest one when the table is full.
///
/// All operations on one key take constant time.
public struct BoundedTable<Key: Hashable, Value> {
  /// A place in the list of entries, which is a ring through the place 0: that one has no entry,
  /// and is before the oldest and behind the newest.
  @usableFromInline struct Place {
    @usableFromInline var entry: (key: Key, value: Value)?
    @usableFromInline var older = 0
    @usableFromInline var newer = 0

    @usableFromInline init(entry: (key: Key, value: Value)? = nil) { self.entry = entry }
  }

  /// The maximum number of entries, at least 1.
  public let limit: Int
  @usableFromInline var index: [Key: Int] = [:]
  @usableFromInline var places = [Place()]
  /// Places without an entry, for new ones.
  @usableFromInline var free: [Int] = []

  /// Creates an empty table.
  ///
  /// - Parameter limit: the maximum number of entries; values below 1 count as 1.
  @inlinable public init(limit: Int) { self.limit = Swift.max(limit, 1) }

  /// The number of entries.
  @inlinable public var count: Int { index.count }

  /// Whether the table has no entries.
  @inlinable public var isEmpty: Bool { index.isEmpty }

  /// The value of a key. Setting a value keeps the position of a known key; a new key becomes the
  /// newest, and evicts the oldest of a full table. Setting `nil` removes the key.
  @inlinable public subscript(key: Key) -> Value? {
    get { index[key].flatMap { places[$0].entry?.value } }
    set {
      if let newValue {
        update(newValue, for: key)
      } else {
        removeValue(forKey: key)
      }
    }
  }

  /// Sets a value and makes its key the newest, whether or not it is known. Evicts the oldest entry
  /// of a full table.
  @inlinable public mutating func setNewest(_ value: Value, for key: Key) {
    removeValue(forKey: key)
    add(value, for: key)
  }

  /// Removes a key and returns its value.
  @inlinable @discardableResult public mutating func removeValue(forKey key: Key) -> Value? {
    index.removeValue(forKey: key).flatMap { take($0)?.value }
  }

  /// Removes the oldest entry and returns it; `nil` if the table is empty.
  @inlinable @discardableResult public mutating func removeOldest() -> (key: Key, value: Value)? {
    guard let oldest = take(places[0].newer) else { return nil }
    index[oldest.key] = nil
    return oldest
  }

  /// Removes the matching entries and returns their number. O(n).
  @inlinable @discardableResult public mutating func removeAll(
    where isMatch: (Key, Value) throws -> Bool
  ) rethrows -> Int {
    let keys = try filter { try isMatch($0.key, $0.value) }.map(\.key)
    for key in keys { removeValue(forKey: key) }
    return keys.count
  }

  /// Removes all entries, and releases the memory.
  @inlinable public mutating func removeAll() { self = Self(limit: limit) }

  @inlinable mutating func update(_ value: Value, for key: Key) {
    if let known = index[key] {
      places[known].entry = (key, value)
    } else {
      add(value, for: key)
    }
  }

  /// Adds a key that the table does not have.
  @inlinable mutating func add(_ value: Value, for key: Key) {
    if index.count >= limit { removeOldest() }
    let place = free.popLast() ?? places.count
    if place == places.count { places.append(Place()) }
    let newest = places[0].older
    places[place].entry = (key, value)
    places[place].older = newest
    places[place].newer = 0
    places[newest].newer = place
    places[0].older = place
    index[key] = place
  }

  /// Empties a place and returns its entry; `nil` for the place 0.
  @inlinable mutating func take(_ place: Int) -> (key: Key, value: Value)? {
    guard let entry = places[place].entry.take() else { return nil }
    let older = places[place].older
    let newer = places[place].newer
    places[older].newer = newer
    places[newer].older = older
    free.append(place)
    return entry
  }
}

extension BoundedTable: Sequence {
  /// An iterator over the entries, oldest first.
  public struct Iterator: IteratorProtocol {
    @usableFromInline let places: [Place]
    @usableFromInline var place = 0

    @usableFromInline init(_ places: [Place]) { self.places = places }

    /// See `IteratorProtocol`.
    @inlinable public mutating func next() -> (key: Key, value: Value)? {
      place = places[place].newer
      return places[place].entry
    }
  }

  /// Returns an iterator over the entries, oldest first.
  @inlinable public func makeIterator() -> Iterator { Iterator(places) }
}

extension BoundedTable.Place: Sendable where Key: Sendable, Value: Sendable {}
extension BoundedTable: Sendable where Key: Sendable, Value: Sendable {}
