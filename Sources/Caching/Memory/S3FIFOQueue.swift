// S3FIFOQueue: the eviction queue of the memory tier (S3-FIFO; Yang and others, SOSP 2023).

import Core
import Synchronization

/// A variant in memory with its cost, its recent uses and its place in the eviction queue.
final class MemoryEntry: Sendable {
  /// The maximum count of uses: two bits in the paper.
  static let maximumUses: UInt8 = 3

  let variant: Variant
  /// The cost in bytes.
  let cost: Int
  /// The slot in the queue, set by the tier. Safe: only the holder of the queue's lock uses it.
  nonisolated(unsafe) var slot: S3FIFOQueue.Slot = 0
  /// Whether the entry is in the main queue. Safe: only the holder of the queue's lock uses it.
  nonisolated(unsafe) fileprivate var isMain = false
  private let counted = Atomic<UInt8>(0)

  init(_ variant: Variant, cost: Int) {
    self.variant = variant
    self.cost = cost
  }

  /// Hits up to `maximumUses`, minus those that the queue has subtracted. Concurrent hits may count
  /// as one.
  var uses: UInt8 {
    get { counted.load(ordering: .relaxed) }
    set { counted.store(newValue, ordering: .relaxed) }
  }

  /// Records a hit. Any thread may call this; most calls write nothing.
  func touch() {
    let uses = uses
    if uses < Self.maximumUses { counted.store(uses + 1, ordering: .relaxed) }
  }
}

/// The eviction queue. It is not thread-safe; hits do not use it.
///
/// - New entries enter the small queue. At its end, entries with two hits move to the main queue.
///   The others are evicted and their hashes are remembered.
/// - An entry whose hash is remembered enters the main queue directly.
/// - At the end of the main queue, an entry with hits returns to its start, for one hit less.
///
/// So entries that are used once pass through a tenth of the tier and do not evict the rest. The
/// choice over SIEVE and LRU, and of one queue for all shards, comes from replayed requests: see
/// docs/performance.md.
struct S3FIFOQueue {
  /// The slot of an entry while it is in the queue. Slots are reused.
  typealias Slot = Int32

  /// The small queue has one part in this many of the total cost.
  private static let smallShare = 10
  /// Maximum number of entries examined before one is evicted regardless of its hits. It bounds the
  /// time of one eviction.
  private static let maximumSteps = 1_024

  private struct Node {
    var entry: MemoryEntry?
    /// The next newer node; -1 at the end.
    var newer: Slot = -1
    /// The next older node; -1 at the end.
    var older: Slot = -1
  }

  private struct List {
    var newest: Slot = -1
    var oldest: Slot = -1
    var count = 0
    var cost = 0
  }

  private var nodes: [Node] = []
  private var free: [Slot] = []
  private var small = List()
  private var main = List()
  /// The hashes of keys that the small queue evicted last, at most as many as there are entries. A
  /// hash collision is harmless.
  private var ghosts = BoundedTable<Int, Void>(limit: .max)

  /// The number of entries.
  var count: Int { small.count + main.count }
  /// The total cost in bytes.
  var cost: Int { small.cost + main.cost }

  /// Adds an entry.
  ///
  /// - Parameter isProven: whether it replaces an entry of the main queue.
  mutating func insert(_ entry: MemoryEntry, isProven: Bool = false) -> Slot {
    let slot = free.popLast() ?? Slot(nodes.count)
    if Int(slot) == nodes.count { nodes.append(Node()) }
    entry.isMain = ghosts.removeValue(forKey: entry.variant.key.storedHash) != nil || isProven
    nodes[Int(slot)].entry = entry
    link(slot, entry: entry)
    return slot
  }

  /// Removes an entry without remembering its hash. Also returns whether it was in the main queue.
  mutating func remove(_ slot: Slot) -> (entry: MemoryEntry, wasMain: Bool)? {
    guard let entry = nodes[Int(slot)].entry else { return nil }
    unlink(slot, entry: entry)
    nodes[Int(slot)].entry = nil
    free.append(slot)
    return (entry, entry.isMain)
  }

  /// Evicts the next entry and returns it; `nil` if the queue is empty.
  mutating func evict() -> MemoryEntry? {
    var steps = 0
    while true {
      let isSmall = main.count == 0 || small.cost * Self.smallShare >= cost
      let slot = isSmall ? small.oldest : main.oldest
      guard slot >= 0, let entry = nodes[Int(slot)].entry else { return nil }
      steps += 1
      let uses = entry.uses
      if uses < (isSmall ? 2 : 1) || steps > Self.maximumSteps {
        _ = remove(slot)
        if isSmall { remember(entry.variant.key.storedHash) }
        return entry
      }
      unlink(slot, entry: entry)
      entry.uses = isSmall ? 0 : uses - 1
      entry.isMain = true
      link(slot, entry: entry)
    }
  }

  private mutating func remember(_ hash: Int) {
    ghosts.setNewest((), for: hash)
    while ghosts.count > count { ghosts.removeOldest() }
  }

  /// Makes the node the newest of its queue.
  private mutating func link(_ slot: Slot, entry: MemoryEntry) {
    var list = entry.isMain ? main : small
    nodes[Int(slot)].newer = -1
    nodes[Int(slot)].older = list.newest
    if list.newest >= 0 { nodes[Int(list.newest)].newer = slot } else { list.oldest = slot }
    list.newest = slot
    list.count += 1
    list.cost += entry.cost
    keep(list, isMain: entry.isMain)
  }

  private mutating func unlink(_ slot: Slot, entry: MemoryEntry) {
    let node = nodes[Int(slot)]
    var list = entry.isMain ? main : small
    if node.newer >= 0 {
      nodes[Int(node.newer)].older = node.older
    } else {
      list.newest = node.older
    }
    if node.older >= 0 {
      nodes[Int(node.older)].newer = node.newer
    } else {
      list.oldest = node.newer
    }
    list.count -= 1
    list.cost -= entry.cost
    keep(list, isMain: entry.isMain)
  }

  private mutating func keep(_ list: List, isMain: Bool) {
    if isMain { main = list } else { small = list }
  }
}
