// CacheBenchmark: the command line of the cache's benchmark; what it measures, it prints as JSON.

import FoundationEssentials
import Glibc

/// `benchmark-cache ratios REQUESTS OBJECTS`, `benchmark-cache fill FOLDER COUNT`, `benchmark-cache disk FOLDER COUNT`,
/// `benchmark-cache memory COUNT`.
enum CacheBenchmark {
  static func run(arguments: [String]) async {
    do {
      switch (arguments.first, arguments.count) {
      case ("ratios", 3):
        guard let requests = Int(arguments[1]), let objects = Int(arguments[2]), objects > 0 else {
          break
        }
        return try show(HitRatios.measure(requests: requests, objects: objects))
      case ("fill", 3):
        guard let count = Int(arguments[2]), count >= DiskFilling.stores else { break }
        return try show(try await DiskFilling.fill(arguments[1], upTo: count))
      case ("disk", 3):
        guard let count = Int(arguments[2]), count > 0 else { break }
        return try show(try await DiskCosts.measure(arguments[1], count: count))
      case ("memory", 2):
        guard let count = Int(arguments[1]), count > 0 else { break }
        return try show(MemoryCosts.measure(count: count))
      default: break
      }
      fail(
        "benchmark-cache ratios REQUESTS OBJECTS | fill FOLDER COUNT | disk FOLDER COUNT | memory COUNT"
      )
    } catch {
      fail("\(error)")
    }
  }

  static func fail(_ reason: String) -> Never {
    var line = "benchmark-cache: \(reason)\n"
    line.withUTF8 { _ = write(STDERR_FILENO, $0.baseAddress, $0.count) }
    exit(1)
  }

  private static func show(_ result: some Encodable) throws {
    print(String(decoding: try JSONEncoder().encode(result), as: UTF8.self))
  }
}
