// AcceptMemo: caches the parsed Accept values that an event loop saw last.

import CMicrohttpd
import Glibc

/// A cache of parsed `Accept` values. Clients send few distinct values, and comparing one is
/// cheaper than parsing it.
///
/// A value's length selects its slot; it differs between browsers. Belongs to the thread of its
/// event loop.
final class AcceptMemo {
  private struct Place {
    var length = 0
    var scanner = AcceptScanner()
  }

  /// A power of two.
  private static let places = 8
  /// Values longer than this are parsed each time.
  private static let longest = 256

  private let lines = UnsafeMutableRawPointer.allocate(
    byteCount: places * longest, alignment: 16)
  private let read = UnsafeMutablePointer<Place>.allocate(capacity: places)

  /// Creates an empty cache. Every slot holds the empty value, which names no format.
  init() { read.initialize(repeating: Place(), count: Self.places) }

  deinit {
    read.deallocate()
    lines.deallocate()
  }

  /// Returns the formats of all `Accept` fields of the current request. Does not allocate if the
  /// values are cached.
  func formats(on connection: OpaquePointer) -> AcceptedFormats {
    var search = Search(memo: Unmanaged.passUnretained(self))
    withUnsafeMutablePointer(to: &search) { search in
      // Calls back before it returns, and retains nothing.
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
    /// Outlives the search, which runs inside one of its methods.
    let memo: Unmanaged<AcceptMemo>
    var scanner = AcceptScanner()

    mutating func add(_ line: UnsafeRawBufferPointer) {
      scanner.add(memo.takeUnretainedValue().scanner(of: line))
    }
  }

  /// Returns the parsed form of one field value.
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
