// ImagingOracle: decodes an input in two workers with different free bytes, and compares.

import CLinux
import Core
import Glibc

/// Two workers. In each, glibc fills what it allocates with a pattern before the worker's own
/// malloc(3) zeroes it, and no block is its own mapping. One of them also has another image before
/// each input, which leaves its pixels in memory.
///
/// An answer that differs has something of what a worker's memory held.
public final class ImagingOracle {
  /// A worker's answer.
  public enum Answer: Equatable, CustomStringConvertible {
    case image([UInt8])
    case failure(String)
    /// The worker has ended, or took too long.
    case died

    /// The number of bytes, or what happened.
    public var description: String {
      switch self {
      case .image(let bytes): "\(bytes.count) bytes"
      case .failure(let code): code
      case .died: "died"
      }
    }
  }

  private let program: String
  private var plain: PatternedWorker
  private var used: PatternedWorker
  private let other: FileRegion
  /// The workers started in place of ones that died.
  public private(set) var deaths = 0

  /// Starts both workers.
  ///
  /// - Parameters:
  ///   - program: The path of the worker program.
  ///   - other: The image before each input.
  public init(program: String, other: [UInt8]) throws {
    self.program = program
    self.other = try .sealed(other)
    plain = try PatternedWorker(program, pattern: 0x5a)
    used = try PatternedWorker(program, pattern: 0xc3)
  }

  /// Returns both workers' answers to a job.
  public func answers(
    to input: [UInt8], _ transform: Transform, limits: ImagingLimits
  ) throws -> (Answer, Answer) {
    let file = try FileRegion.sealed(input)
    let first = plain.answer(to: file, transform, limits)
    _ = used.answer(to: other, transform, limits)
    let second = used.answer(to: file, transform, limits)
    if first == .died {
      deaths += 1
      plain = try PatternedWorker(program, pattern: 0x5a)
    }
    if second == .died {
      deaths += 1
      used = try PatternedWorker(program, pattern: 0xc3)
    }
    return (first, second)
  }
}

/// A worker whose allocations glibc fills with a pattern.
private final class PatternedWorker {
  private let process: ChildProcess
  private let socket: WireSocket
  private let results: OwnedDescriptor
  private var jobs: UInt64 = 0

  init(_ program: String, pattern: Int) throws {
    var pair = try WirePair()
    guard let server = pair.server.take(), let worker = pair.worker.take() else {
      throw WireError.closed
    }
    socket = WireSocket(owning: server)
    results = OwnedDescriptor(owning: pictor_linux_memory_file("results"))
    let tunables = ["perturb=\(pattern)", "tcache_count=0", "mmap_max=0"]
    process = try ChildProcess(
      [program, "--worker", "--sandbox", "off"],
      environment: [
        "GLIBC_TUNABLES": tunables.map { "glibc.malloc.\($0)" }.joined(separator: ":"),
        "SWIFT_BACKTRACE": "enable=no", "MALLOC_ARENA_MAX": "1", "G_SLICE": "always-malloc",
        "OMP_NUM_THREADS": "1",
      ], inherited: [worker.value, results.value])
    _ = try message()
  }

  deinit { process.kill() }

  /// The longest time for an answer: no input needs a hundredth of it.
  private static let patience: CInt = 60_000

  private func message() throws(WireError) -> WireMessage {
    guard socket.hasMessage(within: Self.patience) else { throw .wouldBlock }
    return try socket.receive()
  }

  func answer(
    to file: FileRegion, _ transform: Transform, _ limits: ImagingLimits
  ) -> ImagingOracle.Answer {
    jobs += 1
    let job = JobMessage(
      ImageJob(file: file, transform: transform, density: 1), id: jobs, limits: limits)
    do throws(WireError) {
      try socket.send(job.encoded(), passing: file.descriptor)
      defer {
        ftruncate(results.value, 0)
        lseek(results.value, 0, SEEK_SET)
      }
      let message = try message()
      switch try AnswerMessage(decoding: message.bytes) {
      case .result(let result):
        return .image(
          [UInt8](unsafeUninitializedCapacity: result.byteCount) { buffer, done in
            done = max(pread(results.value, buffer.baseAddress, result.byteCount, 0), 0)
          })
      case .failure(_, let error): return .failure(error.code)
      default: return .died
      }
    } catch {
      return .died
    }
  }
}
