// PoolSupport: pools with real workers, and images for them.

import Core
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import ImagingPool

enum PoolSupport {
  /// Path of the worker program, which SwiftPM builds beside the tests.
  static let executable = TestBuild.programFolder + "/pictor-imager"

  /// Returns settings for a few workers.
  static func configuration(workers: Int = 1) -> ImagerPoolConfiguration {
    var configuration = ImagerPoolConfiguration(executable: executable)
    configuration.workers = workers
    configuration.niceness = 0
    if TestBuild.isThreadSanitized {
      configuration.maximumWorkerMemory = nil
      configuration.retireAboveResidentBytes = .max
    }
    return configuration
  }

  /// Runs `body` with a started pool and shuts it down.
  static func withPool(
    _ configuration: ImagerPoolConfiguration = configuration(), log: Log = .silent,
    body: (ImagerPool) async throws -> Void
  ) async throws {
    let pool = ImagerPool(configuration: configuration, log: log)
    try pool.start()
    do {
      try await body(pool)
    } catch {
      await pool.shutDown(within: .zero)
      throw error
    }
    await pool.shutDown(within: .zero)
  }

  /// Returns a job that reduces an image of this size, or only encodes it.
  static func job(width: Int = 64, height: Int = 48, to transform: Transform = Transform()) throws
    -> ImageJob
  {
    ImageJob(
      file: try file(of: png(width: width, height: height)), transform: transform, density: 1)
  }

  /// Returns bytes in a sealed memory file.
  static func file(of bytes: [UInt8]) throws -> FileRegion {
    try .sealed(bytes)
  }

  /// Returns a grey PNG with a gradient, stored without compression.
  static func png(width: Int, height: Int) -> [UInt8] {
    CodedPNG(
      size: PixelSize(width: width, height: height), colorType: 0, depth: 8,
      samples: (0..<height).flatMap { y in (0..<width).map { ($0 * 3 + y * 5) & 255 } }
    ).bytes
  }

  /// Returns the bytes of a result.
  static func bytes(of body: Variant.Body) throws -> [UInt8] {
    let bytes =
      switch body {
      case .memory(let bytes): bytes
      case .file(let file): try ImageBytes(contentsOf: file, mayMap: false)
      }
    return bytes.withUnsafeBytes { Array($0) }
  }

  /// Returns the libvips modules that a process has loaded.
  static func modules(of pid: pid_t) throws -> Set<String> {
    let files = try lines(of: "/proc/\(pid)/maps").filter { $0.contains("/vips-modules-") }
    return Set(files.compactMap { $0.split(separator: "/").last.map(String.init) })
  }

  /// Returns the anonymous memory of a process in bytes (proc_pid_status(5), RssAnon).
  static func ownBytes(of pid: pid_t) throws -> Int {
    let line = try lines(of: "/proc/\(pid)/status").first { $0.hasPrefix("RssAnon:") }
    let kilobytes = line?.split(separator: " ").dropFirst().first.flatMap { Int($0) }
    return try #require(kilobytes) * 1_024
  }

  /// Reads in parts, because files in /proc have no length.
  static func lines(of path: String) throws -> [String] {
    let file = try #require(fopen(path, "r"))
    defer { fclose(file) }
    var lines: [String] = []
    var buffer = [CChar](repeating: 0, count: 4_096)
    while fgets(&buffer, CInt(buffer.count), file) != nil {
      let line = buffer.prefix { $0 != 0 && $0 != 10 }.map(UInt8.init(bitPattern:))
      lines.append(String(decoding: line, as: UTF8.self).replacing("\t", with: " "))
    }
    return lines
  }

  /// Returns whether a process exists, zombies included.
  static func exists(_ pid: pid_t) -> Bool { kill(pid, 0) == 0 }
}

extension ImagerPool {
  /// The number of idle workers.
  var idleWorkers: Int { core.load()?.read { $0.idle.count } ?? 0 }

  /// The workers that are ready, and whether each has a job.
  var workerPIDs: [(pid: pid_t, isBusy: Bool)] {
    core.load()?.read { $0.slots.compactMap { slot in slot.pid.map { ($0, slot.isBusy) } } } ?? []
  }

  /// The ready worker processes.
  var pids: [pid_t] { workerPIDs.map(\.pid) }

  /// A worker process with a job.
  var busyPID: pid_t? { workerPIDs.first { $0.isBusy }?.pid }
}
