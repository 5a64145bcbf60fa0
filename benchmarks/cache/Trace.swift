// Trace: requests made by chance, as the clients of an image server make them.

import Glibc

func power(_ base: Double, _ exponent: Double) -> Double { pow(base, exponent) }

/// Who asks for what, one after the other.
struct Trace {
  let name: String
  /// Numbers of objects from 0 on.
  let requests: [Int]
  /// What each object takes; empty: all the same, so that objects are counted and not bytes.
  let sizes: [Int]
  /// How many objects there are that are asked for again: what sizes of caches are shares of.
  let objects: Int

  /// Those of the table.
  static func all(requests: Int, objects: Int) -> [Trace] {
    [0.7, 0.9, 1.1].map { zipf(requests, objects, alpha: $0) } + [
      scans(requests, objects), shifts(requests, objects), sizes(requests, objects),
    ]
  }

  /// The classic: popularity falls with the rank.
  private static func zipf(_ requests: Int, _ objects: Int, alpha: Double) -> Trace {
    var chance = Chance(seed: 1)
    let zipf = Zipf(objects, alpha: alpha)
    return Trace(
      name: "Zipf \(alpha)", requests: (0..<requests).map { _ in zipf.next(&chance) }, sizes: [],
      objects: objects)
  }

  /// Every fifth request is a crawler's, which asks for thousands of images in a row that nobody asks for again.
  private static func scans(_ requests: Int, _ objects: Int) -> Trace {
    var chance = Chance(seed: 2)
    let zipf = Zipf(objects, alpha: 0.9)
    let run = objects / 20
    var made = [Int]()
    var fresh = objects
    while made.count < requests {
      for _ in 0..<(4 * run) { made.append(zipf.next(&chance)) }
      for _ in 0..<run {
        made.append(fresh)
        fresh += 1
      }
    }
    return Trace(
      name: "Zipf 0.9, scans", requests: Array(made.prefix(requests)), sizes: [], objects: objects)
  }

  /// Ten times on the way, everything is another's: today's images are not tomorrow's.
  private static func shifts(_ requests: Int, _ objects: Int) -> Trace {
    var chance = Chance(seed: 3)
    let zipf = Zipf(objects, alpha: 0.9)
    let made = (0..<requests).map { number in
      let phase = number * 10 / requests
      return (zipf.next(&chance) + phase * objects / 10) % objects
    }
    return Trace(name: "Zipf 0.9, shifting", requests: made, sizes: [], objects: objects)
  }

  /// Sizes of thumbnails: half of them below 5 kB, a hundredth above 50; whether one is popular has nothing to do with
  /// its size.
  private static func sizes(_ requests: Int, _ objects: Int) -> Trace {
    var chance = Chance(seed: 4)
    let zipf = Zipf(objects, alpha: 0.9)
    let sizes = (0..<objects).map { _ in
      // A sum of twelve is as good as normal.
      let normal = (0..<12).reduce(-6.0) { sum, _ in sum + chance.unit() }
      return min(max(Int(5_000 * exp(normal)), 200), 100_000)
    }
    return Trace(
      name: "Zipf 0.9, in bytes", requests: (0..<requests).map { _ in zipf.next(&chance) },
      sizes: sizes, objects: objects)
  }
}
