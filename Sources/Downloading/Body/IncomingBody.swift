// IncomingBody: the body of a response while it is received, its memory, and its readers.

import CCurl
import Core
import Glibc

/// The body of a response while it is received: a memory file, its lease, and its readers. Belongs
/// to the transfer thread.
final class IncomingBody {
  /// The answer to a piece of the body.
  enum Answer {
    case taken
    /// There is no memory for the body yet: keep the piece back.
    case wait
    /// End the transfer.
    case refused(ImageError)
  }

  /// The length of the body in bytes; `nil` if it is unknown.
  let expected: Int?
  /// Maximum length of the body in bytes.
  private let limit: Int
  /// The decoder of a body with a content coding.
  private let coded: CodedBody?
  /// Bytes received, decoded.
  private(set) var received = 0
  private let handle: UnsafeMutableRawPointer
  private var file: MemoryFile?
  /// The body for readers that follow it; only if requested.
  private var growing: DownloadBuffer?
  /// The memory that the body has; `nil` before.
  private var lease: ByteLease?
  /// Whether curl keeps the body back.
  private var isPaused = false

  /// Creates an empty body.
  ///
  /// - Parameters:
  ///   - coded: the decoder; `nil` for a body without a content coding.
  ///   - handle: curl's handle of the transfer, which outlives the body.
  init(
    expecting expected: Int?, limit: Int, coded: CodedBody?, pausing handle: UnsafeMutableRawPointer
  ) {
    self.expected = expected
    self.limit = limit
    self.coded = coded
    self.handle = handle
  }

  deinit { growing?.end(isWhole: false) }

  /// Whether the body has its memory.
  var hasMemory: Bool { lease != nil }

  /// Whether curl keeps the body back until there is memory.
  var isWaiting: Bool { isPaused && lease == nil }

  /// Gives the body its memory: for all of it, or for nothing yet if its length is unknown.
  func take(_ lease: ByteLease) {
    self.lease = lease
    growing?.hold(lease)
    guard isPaused else { return }
    isPaused = false
    // curl delivers what it has kept back. If the transfer refuses that, it refuses the rest as
    // well, and so ends.
    _ = curl_easy_pause(handle, CURLPAUSE_CONT)
  }

  /// Offers the body to readers while it is received. If that fails, they get the complete body
  /// later.
  func offer(_ origin: OriginResponse, to reader: (any StreamingBody) -> Void) {
    guard let file = try? MemoryFile(name: "pictor-body"),
      let growing = try? DownloadBuffer(
        reading: file.descriptor, origin: origin, expected: expected)
    else { return }
    self.file = consume file
    self.growing = growing
    if let lease { growing.hold(lease) }
    reader(growing)
  }

  /// Receives a piece, as the origin sent it.
  func receive(_ bytes: UnsafeRawBufferPointer) -> Answer {
    guard let coded else { return append(bytes) }
    // Before the decoder gets the piece: curl delivers a piece that is kept back once more.
    guard hasMemory else {
      isPaused = true
      return .wait
    }
    return coded.receive(bytes) { append($0) }
  }

  private func append(_ bytes: UnsafeRawBufferPointer) -> Answer {
    let total = received + bytes.count
    guard total <= limit else { return .refused(.sourceTooLarge(limit: limit)) }
    // Readers were told this length and would take more bytes for the end.
    guard total <= expected ?? .max else {
      return .refused(.sourceIncomplete(detail: "more bytes than Content-Length"))
    }
    guard let lease else {
      isPaused = true
      return .wait
    }
    // A body of unknown length fails: if several waited with what they have, none would get more.
    guard expected != nil || lease.grow(by: bytes.count) else {
      return .refused(.overloaded(queue: "download memory", retryAfter: 1))
    }
    do throws(SystemError) {
      if file == nil { file = try MemoryFile(name: "pictor-body") }
      try file?.append(bytes)
    } catch {
      return .refused(.internal(detail: "memory file: \(error)"))
    }
    received = total
    // The last byte is withheld from readers until digests and the image's end are verified.
    growing?.grow(to: received - 1)
    return .taken
  }

  /// Returns the complete body, which counts against its memory until its last use; `nil` if it is
  /// empty. `sent`: the bytes that its digests cover; of a coded body without digests, the decoded
  /// ones.
  ///
  /// - Throws: `sourceIncomplete` if a coded body has no end, or bytes are missing.
  func sealed() throws(ImageError) -> (file: FileRegion, sent: FileRegion, version: UInt64)? {
    let sent = try coded?.sealed()
    // curl counts bytes by Content-Length alone.
    guard received == expected ?? received else {
      throw .sourceIncomplete(detail: "fewer bytes than Content-Range")
    }
    guard received > 0, let file = file.take() else { return nil }
    do throws(SystemError) {
      let region = try file.sealed(lease: lease)
      return (region, sent ?? region, growing?.version ?? .random(in: 1...(.max)))
    } catch {
      throw .internal(detail: "memory file: \(error)")
    }
  }

  /// Tells the readers that the body is complete, or that it will never be. An image without its
  /// end is not, also if its length is the promised one: curl drops bytes behind that without an
  /// error.
  func end(isWhole: Bool) {
    guard let growing else { return }
    let isWhole = isWhole && ImageEnd.isThere(growing)
    if isWhole { growing.grow(to: received) }
    growing.end(isWhole: isWhole)
  }
}

/// A reader's view of a transfer's memory file: its own descriptor, and the readable length. The
/// transfer thread writes it and any thread reads it.
final class DownloadBuffer: StreamingBody {
  private struct State {
    var count = 0
    /// Whether the body is complete; `nil` while it is being received.
    var isWhole: Bool?
    /// What the bytes count against, as long as they can be read.
    var lease: ByteLease?
  }

  let origin: OriginResponse
  let expected: Int?
  let version = UInt64.random(in: 1...(.max))
  private let file: OwnedDescriptor
  private let state = Lock(State())
  private let observers = Observers<Void>()

  /// Creates a view.
  ///
  /// - Parameters:
  ///   - descriptor: the file that is being filled; a duplicate is kept.
  ///   - origin: the response head.
  ///   - expected: bytes of the whole body; `nil` if unknown.
  init(reading descriptor: CInt, origin: OriginResponse, expected: Int?) throws(SystemError) {
    let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    guard duplicate >= 0 else { throw SystemError() }
    file = OwnedDescriptor(owning: duplicate)
    self.origin = origin
    self.expected = expected
  }

  var isComplete: Bool {
    state.withLock { $0.isWhole ?? ($0.count == expected) }
  }

  /// Keeps the lease of the bytes as long as this view.
  func hold(_ lease: ByteLease) { state.withLock { $0.lease = lease } }

  /// Records that `count` bytes are in the file, and notifies the readers.
  func grow(to count: Int) {
    state.withLock { $0.count = count }
    observers.tell(())
  }

  /// Ends the body. Later calls have no effect.
  func end(isWhole: Bool) {
    let isFirst = state.withLock { state in
      defer { state.isWhole = state.isWhole ?? isWhole }
      return state.isWhole == nil
    }
    if isFirst { observers.tell(()) }
  }

  /// Returns bytes of the file, also such that readers do not have yet; fewer at its end.
  func bytes(at position: Int, count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
      used = max(pread(file.value, buffer.baseAddress, count, position), 0)
    }
  }

  /// Bytes in the file.
  var fileSize: Int {
    var status = stat()
    return fstat(file.value, &status) == 0 ? Int(status.st_size) : 0
  }

  func read(at position: Int, into buffer: UnsafeMutableRawBufferPointer) -> PartialRead {
    let (count, isWhole) = state.withLock { ($0.count, $0.isWhole) }
    guard position < count else {
      return switch isWhole {
      case nil: .notYet
      case true?: .end
      case false?: .failed
      }
    }
    while true {
      let read = pread(
        file.value, buffer.baseAddress, min(buffer.count, count - position), position)
      if read < 0, errno == EINTR { continue }
      return read > 0 ? .bytes(read) : .failed
    }
  }

  func observe(_ observer: @escaping @Sendable () -> Void) -> Observation {
    observers.add { _ in observer() }
  }
}

/// The memory for bodies. A transfer that knows the length of its body waits until the whole body
/// fits, so no two transfers wait for each other. Belongs to the transfer thread.
final class BodyRoom {
  private let budget: ByteBudget
  private var waiting: [IncomingBody] = []

  init(_ budget: ByteBudget) { self.budget = budget }

  /// Maximum length of a body, in bytes.
  var limit: Int { budget.limit }

  /// Whether a body of this length fits into half of the memory, with all others.
  func hasPlenty(for length: Int) -> Bool { length <= budget.limit / 2 - budget.used }

  /// Returns a lease of no bytes, which grows with bytes that are kept beside a body.
  func emptyLease() throws(ImageError) -> ByteLease {
    guard let lease = budget.lease(0) else {
      throw .overloaded(queue: "download memory", retryAfter: 1)
    }
    return lease
  }

  /// The number of transfers that wait.
  var waitingCount: Int { waiting.count }

  /// Asks for memory for a body. It gets memory now or later.
  func ask(for body: IncomingBody) {
    waiting.append(body)
    // Those that wait already come first.
    if waiting.count == 1 { grant() }
  }

  /// Gives memory to the bodies that fit, until the first that does not. Call when bytes were
  /// returned.
  func grant() {
    while let next = waiting.first {
      guard let lease = budget.leaseOrNotice(next.expected ?? 0) else { return }
      waiting.removeFirst()
      next.take(lease)
    }
  }

  /// Removes a body that waits, if it does.
  func forget(_ body: IncomingBody) {
    let wasFirst = waiting.first === body
    waiting.removeAll { $0 === body }
    if wasFirst { grant() }
  }
}

/// Looks for the end of an image of a format that is passed through while it arrives: its clients
/// must not take a cut one for complete. What decodes it later finds the rest.
enum ImageEnd {
  /// How many of the last bytes are searched: some programs append data.
  private static let reach = 64 << 10

  /// Whether a received body has its image's end, or is of another format.
  static func isThere(_ body: DownloadBuffer) -> Bool {
    let size = body.fileSize
    let head = body.bytes(at: 0, count: 12)
    func hasTail(_ marker: [UInt8]) -> Bool {
      let tail = body.bytes(at: max(size - reach, 0), count: reach)
      // From its end, where a whole image has it.
      return tail.indices.dropLast(marker.count - 1).reversed().contains {
        tail[$0..<$0 + marker.count].elementsEqual(marker)
      }
    }
    // EOI; scans have no FF without 00 or a restart marker behind it.
    if head.starts(with: [0xff, 0xd8, 0xff]) { return hasTail([0xff, 0xd9]) }
    if head.starts(with: [0x89, 0x50, 0x4e, 0x47]) { return hasTail(Array("IEND".utf8)) }
    // The empty block that ends an image's data, and the trailer.
    if head.starts(with: "GIF8".utf8) { return hasTail([0, 0x3b]) }
    guard head.count == 12, head.starts(with: "RIFF".utf8), head[8...].elementsEqual("WEBP".utf8)
    else { return true }
    return head[4..<8].reversed().reduce(0) { $0 << 8 | Int($1) } + 8 <= size
  }
}
