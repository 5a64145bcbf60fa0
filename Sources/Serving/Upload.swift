// Upload: the body of a request.

import Model

/// Body bytes, kept where the path wants them and thrown away otherwise.
struct Upload {
  /// Most bytes of a body that nobody wants; whoever sends more is cut off.
  static let longestUnwanted = 64 << 10
  /// Most bytes of one that is wanted; of a longer one the rest is thrown away, so that its sender gets an answer.
  static let longest = 16 << 20
  /// Most bytes that are read at all.
  private static let longestRead = 64 << 20

  /// Bytes so far, thrown away or not.
  private(set) var count = 0
  /// The bytes, if they are wanted and not too many.
  private(set) var bytes: [UInt8] = []

  /// Whether it was longer than it may be.
  var isTooLong: Bool { count > Self.longest }

  /// Takes the next bytes; `false`: no more are to be read.
  mutating func take(_ more: UnsafeRawBufferPointer, isWanted: Bool) -> Bool {
    count += more.count
    guard isWanted else { return count <= Self.longestUnwanted }
    if isTooLong { bytes = [] } else { bytes.append(contentsOf: more) }
    return count <= Self.longestRead
  }
}

extension Exchanging {
  /// Takes body bytes; `false`: the connection is to be closed. Only operators' are kept, so that no stranger's fill
  /// memory.
  func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    // Asked once a body: a later piece is wanted if the first one was kept.
    let isFirst = client.upload.count == 0
    let isWanted =
      isFirst
      ? client.target?.route == .prefetches && client.method == .post && isOperator
      : !client.upload.bytes.isEmpty || client.upload.isTooLong
    if isFirst, isWanted {
      // The header's deadline is not the body's.
      client.watch.deadline =
        Clock.coarseMilliseconds() + handler.answerTimeout
        + Upload.longest * 1_000 / handler.configuration.minimumReadRate
    }
    return client.upload.take(bytes, isWanted: isWanted)
  }
}
