// JobAnswerTests: answers that a compromised worker might send.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads) struct JobAnswerTests {
  /// The first bytes of a PNG.
  private let bytes: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0]

  /// Returns an answer with an image; `nil`: with a description.
  private func result(
    id: UInt64 = 1, count: Int, as format: ImageFormat? = .png,
    size: PixelSize = PixelSize(width: 1, height: 1), frames: Int = 1,
    scaledDownFrom larger: PixelSize? = nil
  ) -> [UInt8] {
    AnswerMessage.result(
      ResultMessage(
        id: id,
        report: RenderReport(
          content: format.map {
            .image(
              RenderedImage(
                format: $0, size: size, frames: frames, density: 1, scaledDownFrom: larger))
          } ?? .sourceDescription,
          digest: String(repeating: "0", count: 32)),
        byteCount: count)
    ).encoded()
  }

  /// What the server knows of the job.
  private struct Known {
    var sourceBytes = 0
    var source: FileRegion?
    var limits: ImagingLimits?
    var most = 1_000
  }

  /// Sends a message over a real connection and reads it as the answer to job 1.
  private func read(
    _ message: [UInt8], with file: FileRegion? = nil, passing descriptor: CInt? = nil,
    to transform: Transform = Transform(), _ known: Known = Known(),
    into storage: VariantStorage = .unlimited
  ) throws -> JobAnswer {
    var pair = try WirePair()
    guard let serverEnd = pair.server.take(), let workerEnd = pair.worker.take() else {
      throw WireError.closed
    }
    let server = WireSocket(owning: serverEnd)
    let worker = WireSocket(owning: workerEnd)
    try worker.send(message, passing: descriptor)
    return try JobAnswer.read(
      server.receive(), for: 1, transform: transform, sourceBytes: known.sourceBytes,
      source: known.source, limits: known.limits, from: results(file), atMost: known.most,
      into: storage)
  }

  private func answer(
    _ message: [UInt8], with file: FileRegion? = nil, to transform: Transform = Transform(),
    into storage: VariantStorage = .unlimited
  ) throws -> Result<ProcessedImage, ImageError> {
    guard case .ended(let result) = try read(message, with: file, to: transform, into: storage)
    else { throw WireError.malformed("it takes long") }
    return result
  }

  private func refused(
    _ message: [UInt8], with file: FileRegion? = nil, passing descriptor: CInt? = nil,
    to transform: Transform = Transform(), _ known: Known = Known()
  ) -> Bool {
    do {
      _ = try read(message, with: file, passing: descriptor, to: transform, known)
      return false
    } catch WireError.malformed {
      return true
    } catch {
      return false
    }
  }

  private func made() throws -> FileRegion { try PoolSupport.file(of: bytes) }

  /// Returns a worker's file of results; `nil`: an empty one.
  private func results(_ file: FileRegion?) throws -> OwnedDescriptor {
    let file = try file ?? PoolSupport.file(of: [])
    return OwnedDescriptor(owning: dup(file.descriptor))
  }

  @Test func `a takes-long message is accepted for its own job and without a file`() throws {
    let file = try made()
    withExtendedLifetime(file) {
      #expect(refused(AnswerMessage.takesLong(id: 2, bytes: 1).encoded()))
      #expect(
        refused(AnswerMessage.takesLong(id: 1, bytes: 7).encoded(), passing: file.descriptor))
    }
    let answer = try read(AnswerMessage.takesLong(id: 1, bytes: 7).encoded())
    guard case .takesLong(7) = answer else {
      Issue.record("\(answer)")
      return
    }
  }

  @Test func `a valid response is accepted`() throws {
    let file = try made()
    let image = try answer(result(count: 9), with: file).get()
    #expect(try PoolSupport.bytes(of: image.body) == bytes)
    let failure = AnswerMessage.failure(id: 1, .undecodable(detail: "x"))
    #expect(throws: ImageError.undecodable(detail: "x")) { try answer(failure.encoded()).get() }
  }

  @Test func `a result without room in memory is in a file without a name, or refused`() throws {
    // Given
    let folder = try TemporaryFolder()
    let file = try made()
    func body(room: Int, files limit: Int?, largest: Int = .max) throws -> Variant.Body {
      let storage = VariantStorage(
        memory: ByteBudget(limit: room),
        files: limit.map { UnlinkedFiles(folder: folder.path, limit: $0) },
        maximumInMemory: largest)
      return try answer(result(count: 9), with: file, into: storage).get().body
    }
    // Then
    for (room, limit, largest) in [(8, 9, .max), (9, 9, 8)] {
      let body = try body(room: room, files: limit, largest: largest)
      guard case .file = body else {
        Issue.record("it is in memory")
        continue
      }
      #expect(try PoolSupport.bytes(of: body) == bytes)
    }
    for (room, limit) in [(9, nil), (9, 8), (9, 9)] as [(Int, Int?)] {
      let body = try body(room: room, files: limit)
      guard case .memory = body else {
        Issue.record("it is in a file")
        continue
      }
    }
    #expect(throws: ImageError.overloaded(queue: "memory", retryAfter: 1)) {
      try body(room: 8, files: 8)
    }
    // A large one without a file
    guard case .memory = try body(room: 9, files: nil, largest: 8) else {
      Issue.record("it is in a file")
      return
    }
  }

  @Test func `a result that does not match the job is an internal error`() throws {
    // Given
    let file = try made()
    func failure(_ message: [UInt8], change: (inout Transform) -> Void = { _ in }) throws -> Bool {
      var transform = Transform()
      change(&transform)
      let answer = try self.answer(message, with: file, to: transform)
      if case .failure(.internal) = answer { return true }
      return false
    }
    let large = PixelSize(width: 40, height: 30)
    // Then: of another format than stated or requested
    #expect(try failure(result(count: 9, as: .avif)))
    #expect(try failure(result(count: 9, as: nil)))
    #expect(try failure(result(count: 9)) { $0.format = .avif })
    #expect(try !failure(result(count: 9)) { $0.format = .png })
    // Then: of a format that is no output, unless the source may be passed
    #expect(try failure(result(count: 9, as: .svg)))
    // Then: larger than its box or than the limit
    #expect(try failure(result(count: 9, as: .png, size: large)) { $0.width = 39 })
    #expect(
      try failure(result(count: 9, as: .png, size: large)) {
        $0.width = 40
        $0.height = 29
      })
    #expect(
      try failure(result(count: 9, as: .png, size: large)) { $0.limitBytes = 40 * 30 * 4 - 1 })
    #expect(
      try !failure(result(count: 9, as: .png, size: large)) {
        $0.width = 13
        $0.scale = 3.05
      })
    #expect(
      try !failure(result(count: 9, as: .png, size: large)) {
        $0.width = 30
        $0.fit = .outside
      })
    #expect(try !failure(result(count: 9, as: .png, size: large)) { $0.limitBytes = 40 * 30 * 4 })
    #expect(
      try !failure(result(count: 9, as: .png, size: large)) {
        $0.width = 20
        $0.output.passed = .all
      })
  }

  @Test(arguments: [
    (Fit.contain, false, true), (.contain, true, true), (.fill, true, true), (.cover, true, true),
    (.fill, false, false), (.cover, false, false), (.inside, true, false), (.outside, true, false),
  ])
  func `a result of a size that no source can have is an internal error`(
    fit: Fit, enlarge: Bool, isExact: Bool
  ) throws {
    // Given: a box of 20 by 15 points at two pixels a point
    var transform = Transform()
    transform.width = 20
    transform.height = 15
    transform.scale = 2
    transform.fit = fit
    transform.enlarge = enlarge
    let file = try made()
    func isAccepted(_ width: Int, _ height: Int, scaledDownFrom larger: PixelSize? = nil) throws
      -> Bool
    {
      let message = result(
        count: 9, size: PixelSize(width: width, height: height), scaledDownFrom: larger)
      let answer = try self.answer(message, with: file, to: transform)
      return (try? answer.get()) != nil
    }
    // Then
    let box = PixelSize(width: 40, height: 30)
    #expect(try isAccepted(40, 30))
    #expect(try isAccepted(1, 1) == !isExact)
    #expect(try isAccepted(40, 29) == !isExact)
    #expect(try isAccepted(20, 15, scaledDownFrom: box))
    #expect(try isAccepted(20, 15, scaledDownFrom: PixelSize(width: 40, height: 31)) == !isExact)
    // A turned box has one size, too.
    transform.sizing.angle = 90.5
    #expect(try isAccepted(40, 30) == !isExact && isAccepted(30, 40))
    transform.sizing.angle = 0
    // A limit of bytes is no fault.
    transform.limitBytes = 20 * 15 * 4
    #expect(try isAccepted(20, 15, scaledDownFrom: box))
  }

  @Test func `a result with far more bytes than its pixels can take is refused`() throws {
    // Given 2 MiB as an image of one pixel
    let large = bytes + [UInt8](repeating: 0, count: 2 << 20)
    let file = try PoolSupport.file(of: large)
    func isRefused(sourceBytes: Int) -> Bool {
      refused(
        result(count: large.count), with: file, Known(sourceBytes: sourceBytes, most: .max))
    }
    // Then: what a source's metadata may add is its length
    #expect(isRefused(sourceBytes: 100))
    #expect(!isRefused(sourceBytes: large.count))
  }

  @Test func `a result larger than its source or than a limit, or of too many frames, is refused`()
    throws
  {
    // Given: a source of 64 by 48 pixels, and 25 pixels across asked for
    let source = try PoolSupport.file(of: PoolSupport.png(width: 64, height: 48))
    let file = try made()
    var limits = ImagingLimits()
    limits.maximumResultPixels = 1_000_000
    limits.maximumFrames = 10
    func isRefused(
      _ width: Int, _ height: Int, frames: Int = 1, source: FileRegion? = nil,
      _ change: (inout Transform) -> Void = { _ in }
    ) -> Bool {
      var transform = Transform()
      transform.width = 25
      change(&transform)
      let message = result(
        count: 9, size: PixelSize(width: width, height: height), frames: frames)
      return refused(message, with: file, to: transform, Known(source: source, limits: limits))
    }
    // Then
    #expect(!isRefused(25, 19, source: source))
    #expect(isRefused(25, 65, source: source))
    #expect(isRefused(25, 19, frames: 2, source: source))
    #expect(!isRefused(25, 65, source: source) { $0.enlarge = true })
    #expect(!isRefused(25, 40_000) && isRefused(25, 40_001))
    #expect(!isRefused(25, 19, frames: 10) && isRefused(25, 19, frames: 11))
  }

  @Test func `an estimate far beyond the memory of a worker is refused`() {
    var limits = ImagingLimits()
    limits.maximumBytes = 1 << 30
    let message = AnswerMessage.takesLong(id: 1, bytes: 1 << 40).encoded()
    #expect(refused(message, Known(limits: limits)))
  }

  @Test func `a result of another length than its file is refused, and an answer with a file`()
    throws
  {
    let file = try made()
    #expect(refused(result(count: 9)))
    #expect(refused(result(count: 8), with: file))
    #expect(refused(result(count: 10), with: file))
    withExtendedLifetime(file) {
      #expect(refused(result(count: 9), with: file, passing: file.descriptor))
    }
  }

  @Test func `a response for another job, out of order or too large is refused`() throws {
    let file = try made()
    let failure = AnswerMessage.failure(id: 1, .undecodable(detail: "")).encoded()
    withExtendedLifetime(file) {
      #expect(refused(result(id: 2, count: 9), with: file))
      #expect(refused(result(count: 1_001), with: file))
      #expect(refused(failure, passing: file.descriptor))
    }
    #expect(refused(AnswerMessage.ready(SandboxReport()).encoded()))
    #expect(refused(AnswerMessage.failure(id: 2, .undecodable(detail: "")).encoded()))
    #expect(refused([1, 2, 3]))
  }
}
