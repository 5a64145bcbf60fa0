// Policies: other orders of eviction, to be held beside the memory tier's. Written for traces, not for servers.

/// A cache that is asked for numbered objects and keeps what it was asked for.
protocol Policy {
  /// - Parameters:
  ///   - capacity: the costs of what is kept, together.
  ///   - costs: of each object.
  init(capacity: Int, costs: [Int])
  /// Asks for an object; whether it was there.
  mutating func ask(for object: Int) -> Bool
}

/// Objects in the order they came or were asked for, in places of arrays.
private struct Chain {
  private var newer: [Int32]
  private var older: [Int32]
  private(set) var isIn: [Bool]
  /// What is kept, in costs.
  private(set) var cost = 0
  private let costs: [Int]
  private var head: Int32 = -1
  private var tail: Int32 = -1

  init(costs: [Int]) {
    self.costs = costs
    newer = [Int32](repeating: -1, count: costs.count)
    older = newer
    isIn = [Bool](repeating: false, count: costs.count)
  }

  var oldest: Int? { tail < 0 ? nil : Int(tail) }

  /// The one that came next after it.
  func successor(of object: Int) -> Int? { newer[object] < 0 ? nil : Int(newer[object]) }

  mutating func add(_ object: Int) {
    newer[object] = -1
    older[object] = head
    isIn[object] = true
    if head >= 0 { newer[Int(head)] = Int32(object) } else { tail = Int32(object) }
    head = Int32(object)
    cost += costs[object]
  }

  mutating func remove(_ object: Int) {
    let up = newer[object]
    let down = older[object]
    if up >= 0 { older[Int(up)] = down } else { head = down }
    if down >= 0 { newer[Int(down)] = up } else { tail = up }
    isIn[object] = false
    cost -= costs[object]
  }
}

/// What was not asked for the longest goes.
struct LRU: Policy {
  private let capacity: Int
  private let costs: [Int]
  private var chain: Chain

  init(capacity: Int, costs: [Int]) {
    self.capacity = capacity
    self.costs = costs
    chain = Chain(costs: costs)
  }

  mutating func ask(for object: Int) -> Bool {
    let isHit = chain.isIn[object]
    if isHit { chain.remove(object) }
    guard costs[object] <= capacity else { return isHit }
    while chain.cost + costs[object] > capacity, let victim = chain.oldest { chain.remove(victim) }
    chain.add(object)
    return isHit
  }
}

/// SIEVE (Zhang and others: SIEVE is simpler than LRU, NSDI 2024): a hand goes from the oldest to the newest, spares what
/// was asked for since it last passed, and takes the first that was not.
struct Sieve: Policy {
  private let capacity: Int
  private let costs: [Int]
  private var chain: Chain
  private var isVisited: [Bool]
  private var hand: Int?

  init(capacity: Int, costs: [Int]) {
    self.capacity = capacity
    self.costs = costs
    chain = Chain(costs: costs)
    isVisited = [Bool](repeating: false, count: costs.count)
  }

  mutating func ask(for object: Int) -> Bool {
    if chain.isIn[object] {
      isVisited[object] = true
      return true
    }
    guard costs[object] <= capacity else { return false }
    while chain.cost + costs[object] > capacity, let place = hand ?? chain.oldest {
      hand = chain.successor(of: place)
      if isVisited[place] { isVisited[place] = false } else { chain.remove(place) }
    }
    isVisited[object] = false
    chain.add(object)
    return false
  }
}

/// S3-FIFO (Yang and others: FIFO queues are all you need for cache eviction, SOSP 2023): what is new has a tenth to
/// prove itself in, the rest is for what was asked for again, and what went without that is remembered by name.
struct S3FIFO: Policy {
  private let capacity: Int
  private let costs: [Int]
  private var small: Chain
  private var main: Chain
  private var ghosts: Chain
  private var uses: [UInt8]

  init(capacity: Int, costs: [Int]) {
    self.capacity = capacity
    self.costs = costs
    small = Chain(costs: costs)
    main = small
    ghosts = small
    uses = [UInt8](repeating: 0, count: costs.count)
  }

  mutating func ask(for object: Int) -> Bool {
    if small.isIn[object] || main.isIn[object] {
      uses[object] = min(uses[object] + 1, 3)
      return true
    }
    guard costs[object] <= capacity else { return false }
    while small.cost + main.cost + costs[object] > capacity { evict() }
    uses[object] = 0
    if ghosts.isIn[object] {
      ghosts.remove(object)
      main.add(object)
    } else {
      small.add(object)
    }
    return false
  }

  private mutating func evict() {
    if small.cost >= max(capacity / 10, 1) || main.oldest == nil {
      evictFromSmall()
    } else {
      evictFromMain()
    }
  }

  private mutating func evictFromSmall() {
    while let object = small.oldest {
      small.remove(object)
      if uses[object] > 1 {
        uses[object] = 0
        main.add(object)
      } else {
        ghosts.add(object)
        // As many names as there is room for images in the large queue.
        while ghosts.cost > capacity * 9 / 10, let forgotten = ghosts.oldest {
          ghosts.remove(forgotten)
        }
        return
      }
    }
  }

  private mutating func evictFromMain() {
    while let object = main.oldest {
      main.remove(object)
      guard uses[object] > 0 else { return }
      uses[object] -= 1
      main.add(object)
    }
  }
}

/// The best that can be done by one who knows the future (Belady: A study of replacement algorithms, 1966): what is
/// asked for last goes, or is not kept at all. For objects that all cost 1.
struct Optimum {
  /// Hits ÷ requests.
  static func ratio(of requests: [Int], capacity: Int) -> Double {
    let never = Int32.max
    var next = [Int32](repeating: never, count: requests.count)
    var seen = [Int32](repeating: never, count: (requests.max() ?? 0) + 1)
    for position in requests.indices.reversed() {
      next[position] = seen[requests[position]]
      seen[requests[position]] = Int32(position)
    }
    // The moment of the next request of each kept object; in the heap, moments that are over are passed over.
    var kept = [Int32](repeating: -1, count: seen.count)
    var heap = Heap()
    var count = 0
    var hits = 0
    for (position, object) in requests.enumerated() {
      if kept[object] >= 0 {
        hits += 1
        kept[object] = -1
        count -= 1
      }
      guard next[position] != never else { continue }
      kept[object] = next[position]
      heap.add(next[position])
      count += 1
      while count > capacity, let latest = heap.takeGreatest() {
        let victim = requests[Int(latest)]
        guard kept[victim] == latest else { continue }
        kept[victim] = -1
        count -= 1
      }
    }
    return Double(hits) / Double(requests.count)
  }
}

/// Numbers, the greatest first.
private struct Heap {
  private var numbers: [Int32] = []

  mutating func add(_ number: Int32) {
    numbers.append(number)
    var place = numbers.count - 1
    while place > 0, numbers[(place - 1) / 2] < numbers[place] {
      numbers.swapAt(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
  }

  mutating func takeGreatest() -> Int32? {
    guard let greatest = numbers.first, let last = numbers.popLast() else { return nil }
    guard !numbers.isEmpty else { return greatest }
    numbers[0] = last
    var place = 0
    while true {
      let left = 2 * place + 1
      let right = 2 * place + 2
      var largest = place
      if left < numbers.count, numbers[left] > numbers[largest] { largest = left }
      if right < numbers.count, numbers[right] > numbers[largest] { largest = right }
      if largest == place { return greatest }
      numbers.swapAt(place, largest)
      place = largest
    }
  }
}
