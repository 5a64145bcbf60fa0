// S3FIFOQueue: which entry of the memory tier goes next (S3-FIFO; Yang and others, SOSP 2023).

import Model
import Synchronization

/// A variant in memory with what it counts for and how often it was asked for lately.
final class MemoryEntry: Sendable {
  /// More says no more about an entry: two bits in the paper.
  static let mostUses: UInt8 = 3

  let variant: Variant
  /// In bytes.
  let cost: Int
  private let counted = Atomic<UInt8>(0)

  init(_ variant: Variant, cost: Int) { (self.variant, self.cost) = (variant, cost) }

  /// Hits, up to `mostUses`, less those that the queue has taken off. Hits that come at once may count as one.
  var uses: UInt8 {
    get { counted.load(ordering: .relaxed) }
    set { counted.store(newValue, ordering: .relaxed) }
  }

  /// Notes a hit: any thread may, and most write nothing.
  func touch() {
    let uses = uses
    if uses < Self.mostUses { counted.store(uses + 1, ordering: .relaxed) }
  }
}

/// The order of eviction. Not for several threads at once; hits do not come here.
///
/// What is new goes to a small queue. At its end, what was hit twice moves to the main queue, the rest is evicted and
/// its name is remembered: what comes back under such a name goes to the main queue at once. At the end of that, what
/// was hit goes back to its beginning, for one hit less. So what is asked for once passes through a tenth of the tier
/// and leaves the rest alone.
///
/// Chosen by replaying a million requests (`make bench ONLY=cache`; docs/performance.md has the whole table). At 1 % of
/// 100,000 objects S3-FIFO hit 0.206, 0.450 and 0.732 of Zipf's (α 0.7, 0.9, 1.1), SIEVE 0.193, 0.446 and 0.733, LRU
/// 0.108, 0.341 and 0.665. Where others become popular on the way, SIEVE falls behind: 0.355 against 0.428, and with a
/// tenth of the objects 0.496 against 0.580, even below LRU's 0.590, since what was popular once is spared too long. One
/// queue for all shards, because one each costs a lot where they are short: SIEVE in sixteen parts hit 0.035 instead of
/// 0.090 with 100 objects of Zipf 0.7.
struct S3FIFOQueue {
  /// A place that an entry has as long as it is here; used again afterwards.
  typealias Slot = Int

  /// What the small queue may have of all, one in so many.
  private static let smallShare = 10
  /// Entries that are looked at before the next one has to go whatever it was asked for, so that nobody waits long.
  private static let maximumSteps = 1_024

  private struct Node {
    var entry: MemoryEntry?
    var isMain = false
    /// Towards the newest; -1 at the end.
    var newer: Int32 = -1
    /// Towards the oldest; -1 at the end.
    var older: Int32 = -1
  }

  private struct List {
    var newest: Int32 = -1
    var oldest: Int32 = -1
    var count = 0
    var cost = 0
  }

  private var nodes: [Node] = []
  private var free: [Int32] = []
  private var small = List()
  private var main = List()
  private var ghosts = GhostNames()

  /// Entries that are here.
  var count: Int { small.count + main.count }
  /// Their costs together.
  var cost: Int { small.cost + main.cost }

  /// Adds an entry.
  ///
  /// - Parameter isProven: whether it takes the place of one that was in the main queue.
  mutating func insert(_ entry: MemoryEntry, isProven: Bool = false) -> Slot {
    let slot = free.popLast() ?? Int32(nodes.count)
    if Int(slot) == nodes.count { nodes.append(Node()) }
    let isMain = ghosts.take(entry.variant.key.storedHash) || isProven
    nodes[Int(slot)] = Node(entry: entry, isMain: isMain)
    link(slot, entry)
    return Int(slot)
  }

  /// Takes an entry out, without remembering its name; also tells whether it was in the main queue.
  mutating func remove(_ slot: Slot) -> (entry: MemoryEntry, wasMain: Bool)? {
    guard let entry = nodes[slot].entry else { return nil }
    unlink(Int32(slot), entry)
    nodes[slot].entry = nil
    free.append(Int32(slot))
    return (entry, nodes[slot].isMain)
  }

  /// Takes out what is to go next; `nil` where there is nothing.
  mutating func evict() -> MemoryEntry? {
    var steps = 0
    while true {
      let isSmall = main.count == 0 || small.cost * Self.smallShare >= cost
      let slot = isSmall ? small.oldest : main.oldest
      guard slot >= 0, let entry = nodes[Int(slot)].entry else { return nil }
      steps += 1
      let uses = entry.uses
      if uses < (isSmall ? 2 : 1) || steps > Self.maximumSteps {
        _ = remove(Int(slot))
        if isSmall { ghosts.add(entry.variant.key.storedHash, keeping: count) }
        return entry
      }
      unlink(slot, entry)
      entry.uses = isSmall ? 0 : uses - 1
      nodes[Int(slot)].isMain = true
      link(slot, entry)
    }
  }

  /// Makes it the newest of its queue.
  private mutating func link(_ slot: Int32, _ entry: MemoryEntry) {
    var list = nodes[Int(slot)].isMain ? main : small
    (nodes[Int(slot)].newer, nodes[Int(slot)].older) = (-1, list.newest)
    if list.newest >= 0 { nodes[Int(list.newest)].newer = slot } else { list.oldest = slot }
    list.newest = slot
    list.count += 1
    list.cost += entry.cost
    keep(list, isMain: nodes[Int(slot)].isMain)
  }

  private mutating func unlink(_ slot: Int32, _ entry: MemoryEntry) {
    let node = nodes[Int(slot)]
    var list = node.isMain ? main : small
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
    keep(list, isMain: node.isMain)
  }

  private mutating func keep(_ list: List, isMain: Bool) {
    if isMain { main = list } else { small = list }
  }
}

/// Names of what was evicted lately, as hashes: two names of one hash do no harm.
private struct GhostNames {
  /// When each was added last.
  private var times: [Int: Int] = [:]
  /// Names in the order they were added; some are no longer meant, since they were taken or added again.
  private var names: [Int] = []
  /// How many of `names` are over, from the first on.
  private var passed = 0
  /// The time of `names[0]`.
  private var base = 0

  /// Remembers a name and forgets all but the last `limit`.
  mutating func add(_ name: Int, keeping limit: Int) {
    times[name] = base + names.count
    names.append(name)
    while names.count - passed > limit {
      let oldest = names[passed]
      if times[oldest] == base + passed { times[oldest] = nil }
      passed += 1
    }
    // Not at every step, so that each name is moved about once.
    if passed > 64 && passed * 2 > names.count {
      names.removeFirst(passed)
      (base, passed) = (base + passed, 0)
    }
  }

  /// Whether the name is remembered; it no longer is afterwards.
  mutating func take(_ name: Int) -> Bool { times.removeValue(forKey: name) != nil }
}
