// AcceptMemo: the Accept lines that one worker met last, and what it read in them.

import CMicrohttpd
import Glibc

/// Clients write `Accept` in few ways. To read Chrome's line takes 1,400 instructions, nearly as many as a hit takes here
/// otherwise; to see that it is the same as before, 70 (callgrind).
///
/// A line's place is told by its length, which tells browsers apart. Belongs to its worker's thread.
final class AcceptMemo {
  private struct Place {
    var length = 0
    var scanner = AcceptScanner()
  }

  /// A power of two.
  private static let places = 8
  /// Lines longer than this are read each time.
  private static let longest = 256

  private let lines = UnsafeMutableRawPointer.allocate(
    byteCount: places * longest, alignment: 16)
  private let read = UnsafeMutablePointer<Place>.allocate(capacity: places)

  /// Nothing was read yet: an empty line is at each place, and names nothing.
  init() { read.initialize(repeating: Place(), count: Self.places) }

  deinit {
    read.deallocate()
    lines.deallocate()
  }

  /// What all `Accept` lines of the request on a connection come to. Allocates nothing.
  func formats(on connection: OpaquePointer) -> AcceptedFormats {
    var search = Search(memo: Unmanaged.passUnretained(self))
    withUnsafeMutablePointer(to: &search) { search in
      // Calls back before it returns, and keeps nothing.
      _ = MHD_get_connection_values_n(
        connection, .HEADER_KIND,
        { context, _, name, nameLength, value, length in
          guard nameLength == 6, let context, let name, let value,
            AcceptScanner.isEqual(UnsafeRawBufferPointer(start: name, count: 6), "accept")
          else { return .YES }
          context.assumingMemoryBound(to: Search.self).pointee
            .add(UnsafeRawBufferPointer(start: value, count: length))
          return .YES
        }, search)
    }
    return search.scanner.formats
  }

  private struct Search {
    /// Outlives the search, which is one of its methods.
    let memo: Unmanaged<AcceptMemo>
    var scanner = AcceptScanner()

    mutating func add(_ line: UnsafeRawBufferPointer) {
      scanner.add(memo.takeUnretainedValue().scanner(of: line))
    }
  }

  /// What is in one line.
  func scanner(of line: UnsafeRawBufferPointer) -> AcceptScanner {
    let index = line.count & (Self.places - 1)
    let kept = UnsafeRawBufferPointer(
      start: lines + index * Self.longest, count: read[index].length)
    if line.isEqual(to: kept) { return read[index].scanner }
    var scanner = AcceptScanner()
    scanner.read(line)
    if line.count <= Self.longest, let start = line.baseAddress {
      (lines + index * Self.longest).copyMemory(from: start, byteCount: line.count)
      read[index] = Place(length: line.count, scanner: scanner)
    }
    return scanner
  }
}
