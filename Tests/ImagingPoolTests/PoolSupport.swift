// PoolSupport: pools with real workers, test images, and waits.

import FoundationEssentials
import Glibc
import ImagingPool
import ImagingWire
import Model
import Platform
import Telemetry
import TestSupport
import Testing

enum PoolSupport {
  /// Path of the worker program, which SwiftPM builds beside the tests.
  static let executable: String = {
    let path = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
    return URL(fileURLWithPath: path ?? "").deletingLastPathComponent().path + "/pictor-imager"
  }()

  /// Whether this is a thread-sanitized build, whose shadow memory exceeds any memory limit.
  static let isThreadSanitized = dlsym(nil, "__tsan_init") != nil

  /// Returns settings for a few workers.
  static func configuration(workers: Int = 1) -> ImagerPoolConfiguration {
    var configuration = ImagerPoolConfiguration(executable: executable)
    configuration.workers = workers
    configuration.niceness = 0
    if isThreadSanitized {
      configuration.maximumWorkerMemory = nil
      configuration.retireAboveResidentBytes = .max
    }
    return configuration
  }

  /// Runs `body` with a started pool and shuts it down.
  static func withPool(
    _ configuration: ImagerPoolConfiguration = configuration(), log: Log = .silent,
    _ body: (ImagerPool) async throws -> Void
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

  /// Returns a grey PNG with a gradient, stored without compression (RFC 1950, RFC 1951, ISO/IEC
  /// 15948).
  static func png(width: Int, height: Int) -> [UInt8] {
    var raw: [UInt8] = []
    for y in 0..<height {
      raw.append(0)
      for x in 0..<width { raw.append(UInt8(truncatingIfNeeded: x * 3 + y * 5)) }
    }
    var stored: [UInt8] = [0x78, 0x01]
    var rest = raw[...]
    repeat {
      let block = rest.prefix(65_535)
      rest = rest.dropFirst(block.count)
      let count = UInt16(block.count)
      stored += [rest.isEmpty ? 1 : 0]
      stored += [UInt8(count & 0xff), UInt8(count >> 8), UInt8(~count & 0xff), UInt8(~count >> 8)]
      stored += block
    } while !rest.isEmpty
    var (low, high): (UInt32, UInt32) = (1, 0)
    for byte in raw {
      low = (low + UInt32(byte)) % 65_521
      high = (high + low) % 65_521
    }
    stored += bigEndian(high << 16 | low)
    let header =
      bigEndian(UInt32(width)) + bigEndian(UInt32(height)) + [8, 0, 0, 0, 0] as [UInt8]
    return [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] + chunk("IHDR", header)
      + chunk("IDAT", stored) + chunk("IEND", [])
  }

  private static func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
    let body = Array(name.utf8) + data
    var remainder: UInt32 = 0xffff_ffff
    for byte in body {
      remainder ^= UInt32(byte)
      for _ in 0..<8 { remainder = remainder >> 1 ^ (remainder & 1 == 1 ? 0xedb8_8320 : 0) }
    }
    return bigEndian(UInt32(data.count)) + body + bigEndian(~remainder)
  }

  private static func bigEndian(_ value: UInt32) -> [UInt8] {
    withUnsafeBytes(of: value.bigEndian) { Array($0) }
  }

  /// Waits until `condition` holds, for at most 10 seconds.
  static func eventually(
    _ what: String, sourceLocation: SourceLocation = #_sourceLocation,
    _ condition: () -> Bool
  ) async throws {
    let deadline = ContinuousClock.now + .seconds(10)
    while !condition() {
      try #require(.now < deadline, "\(what) did not happen", sourceLocation: sourceLocation)
      try await Task.sleep(for: .milliseconds(2))
    }
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
  private static func lines(of path: String) throws -> [String] {
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
  /// The ready worker processes.
  var pids: [pid_t] { workerPIDs.map(\.pid) }

  /// A worker process with a job.
  var busyPID: pid_t? { workerPIDs.first { $0.isBusy }?.pid }
}
