// Deque: a queue in a ring, with constant time at both ends.

/// A double-ended queue in a ring buffer.
///
/// Adding an element to an end or taking one from it takes constant time. Inserting and removing in
/// the middle take time in proportion to the distance from the nearer end. The memory stays in
/// proportion to the number of elements, so the ring of a burst is released after it.
public struct Deque<Element> {
  /// The ring. Its length is zero or a power of two.
  @usableFromInline var ring: [Element?] = []
  /// The index in `ring` of the first element.
  @usableFromInline var head = 0
  @usableFromInline var length = 0

  /// The length of the smallest ring.
  @usableFromInline static var smallestRing: Int { 8 }

  /// Creates an empty queue.
  @inlinable public init() {}

  /// Creates a queue of `elements` in their order.
  @inlinable public init(_ elements: some Sequence<Element>) {
    for element in elements { append(element) }
  }

  /// Returns where in the ring an element is. The index may be -1, before the first element.
  @inlinable func place(_ index: Int) -> Int { (head + index) & (ring.count - 1) }

  /// Adds an element at the end.
  @inlinable public mutating func append(_ element: Element) {
    if length == ring.count { resize(Swift.max(2 * length, Self.smallestRing)) }
    ring[place(length)] = element
    length += 1
  }

  /// Takes the first element; `nil` if the queue is empty.
  @inlinable public mutating func popFirst() -> Element? {
    guard length > 0 else { return nil }
    let element = ring[head].take()
    head = place(1)
    length -= 1
    shrink()
    return element
  }

  /// Takes the last element; `nil` if the queue is empty.
  @inlinable public mutating func popLast() -> Element? {
    guard length > 0 else { return nil }
    length -= 1
    let element = ring[place(length)].take()
    shrink()
    return element
  }

  /// Inserts an element so that it gets this index, from 0 to `count`.
  @inlinable public mutating func insert(_ element: Element, at index: Int) {
    precondition(index >= 0 && index <= length, "index out of range")
    if length == ring.count { resize(Swift.max(2 * length, Self.smallestRing)) }
    if index < length - index {
      head = place(-1)
      for other in 0..<index { ring[place(other)] = ring[place(other + 1)] }
    } else {
      for other in stride(from: length, to: index, by: -1) {
        ring[place(other)] = ring[place(other - 1)]
      }
    }
    ring[place(index)] = element
    length += 1
  }

  /// Removes the element at an index and returns it.
  @inlinable @discardableResult public mutating func remove(at index: Int) -> Element {
    let element = self[index]
    if index < length - index {
      for other in stride(from: index, to: 0, by: -1) {
        ring[place(other)] = ring[place(other - 1)]
      }
      ring[head] = nil
      head = place(1)
    } else {
      for other in index..<length - 1 { ring[place(other)] = ring[place(other + 1)] }
      ring[place(length - 1)] = nil
    }
    length -= 1
    shrink()
    return element
  }

  /// Removes the elements that match and keeps the order of the others. O(n).
  @inlinable public mutating func removeAll(
    where isMatch: (Element) throws -> Bool
  ) rethrows {
    self = Self(try filter { try !isMatch($0) })
  }

  /// Removes all elements and releases the memory.
  @inlinable public mutating func removeAll() { self = Self() }

  /// Moves the elements to a ring of `capacity`, a power of two, that has room for them.
  @inlinable mutating func resize(_ capacity: Int) {
    var larger: [Element?] = []
    larger.reserveCapacity(capacity)
    for index in 0..<length { larger.append(ring[place(index)]) }
    larger.append(contentsOf: repeatElement(nil, count: capacity - length))
    ring = larger
    head = 0
  }

  /// Halves a ring that is one eighth full, so that each element is moved about once.
  @inlinable mutating func shrink() {
    if ring.count > 64, length <= ring.count / 8 { resize(ring.count / 2) }
  }
}

extension Deque: RandomAccessCollection, MutableCollection {
  /// See `Collection`. The first element has index 0.
  @inlinable public var startIndex: Int { 0 }
  /// See `Collection`.
  @inlinable public var endIndex: Int { length }

  /// See `Collection`.
  @inlinable public subscript(index: Int) -> Element {
    get {
      guard index >= 0, index < length, let element = ring[place(index)] else {
        preconditionFailure("index out of range")
      }
      return element
    }
    set {
      precondition(index >= 0 && index < length, "index out of range")
      ring[place(index)] = newValue
    }
  }
}

extension Deque: Sendable where Element: Sendable {}

extension Deque: Equatable where Element: Equatable {
  /// Returns whether both queues have equal elements in the same order.
  @inlinable public static func == (left: Self, right: Self) -> Bool {
    left.elementsEqual(right)
  }
}
