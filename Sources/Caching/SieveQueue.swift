// SieveQueue: which entry of the memory tier goes next (SIEVE; Zhang and others, NSDI 2024).

/// The order of eviction over numbered slots, without knowing what is in them.
///
/// Entries stand in the order they came. A hit only sets a bit. A hand walks from the oldest to the newest: it spares,
/// once, what was hit since it last passed and takes the first that was not. So a hit moves nothing, and what is asked
/// for once goes soon.
struct SieveQueue {
  /// A place that an entry has as long as it is kept; used again afterwards.
  typealias Slot = Int

  private struct Node {
    /// Towards the newest; -1 at the end.
    var newer: Int32 = -1
    /// Towards the oldest; -1 at the end.
    var older: Int32 = -1
    var isVisited = false
  }

  private var nodes: [Node] = []
  private var free: [Int32] = []
  private var newest: Int32 = -1
  private var oldest: Int32 = -1
  /// What is looked at next; -1: the oldest.
  private var hand: Int32 = -1

  /// How many slots there are, used or not.
  var slotCount: Int { nodes.count }

  /// Adds an entry as the newest.
  mutating func insert() -> Slot {
    let slot = free.popLast() ?? Int32(nodes.count)
    if Int(slot) == nodes.count { nodes.append(Node()) }
    nodes[Int(slot)] = Node(newer: -1, older: newest)
    if newest >= 0 { nodes[Int(newest)].newer = slot }
    newest = slot
    if oldest < 0 { oldest = slot }
    return Int(slot)
  }

  /// Notes a hit.
  mutating func touch(_ slot: Slot) {
    if !nodes[slot].isVisited { nodes[slot].isVisited = true }
  }

  /// Takes an entry out.
  mutating func remove(_ slot: Slot) {
    let node = nodes[slot]
    if hand == slot { hand = node.newer }
    if node.newer >= 0 { nodes[Int(node.newer)].older = node.older } else { newest = node.older }
    if node.older >= 0 { nodes[Int(node.older)].newer = node.newer } else { oldest = node.newer }
    free.append(Int32(slot))
  }

  /// The entry to be evicted, which the caller then removes; `nil` where there is none, where the hand has come to the
  /// newest, or where it took so many steps. The bits it cleared on the way make the next call more likely to find one.
  mutating func victim(maximumSteps: Int = 256) -> Slot? {
    if hand < 0 { hand = oldest }
    for _ in 0..<maximumSteps where hand >= 0 {
      if !nodes[Int(hand)].isVisited { return Int(hand) }
      nodes[Int(hand)].isVisited = false
      hand = nodes[Int(hand)].newer
    }
    return nil
  }
}
