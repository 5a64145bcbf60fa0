// JPEGMarkersTests: tests of JPEGMarkers.

import Testing

@testable import Core

@Suite struct JPEGMarkersTests {
  /// Calls `body` with a walk over a start marker and `bytes`.
  private func walk(_ bytes: [UInt8], body: (inout JPEGMarkers) throws -> Void) rethrows {
    try ([0xff, 0xd8] + bytes).withUnsafeBytes { buffer in
      var markers = JPEGMarkers(buffer)
      try body(&markers)
    }
  }

  @Test func `a walk reads markers, segments and scans to the end`() throws {
    // Given a segment behind fill bytes, and a scan with a stuffed byte and a restart
    let bytes: [UInt8] = [
      0xff, 0xff, 0xdb, 0, 4, 7, 8, 0xff, 0xda, 0, 2, 1, 0xff, 0, 2, 0xff, 0xd3, 3, 0xff, 0xff,
      0xd9,
    ]
    try walk(bytes) { markers in
      // When and then
      #expect((try? markers.next()) == 0xdb)
      #expect(markers.segmentLength == 4)
      #expect((try? markers.segment()).map(Array.init) == [7, 8])
      let scan = markers.nextSegment()
      #expect(scan?.marker == 0xda && scan?.content.isEmpty == true)
      try markers.skipScan()
      #expect(markers.position == 2 + bytes.count - 2)
      #expect((try? markers.next()) == 0xd9)
      #expect(markers.left == 0 && !markers.hasStrayBytes)
      #expect(throws: EndOfBytes()) { try markers.next() }
    }
  }

  @Test func `stray bytes stop a walk or are skipped`() {
    walk([1, 0xff, 0, 0xff, 0xfe, 0, 2]) { markers in
      #expect((try? markers.next()) == nil)
      #expect(markers.position == 2)
      #expect(markers.nextSegment()?.marker == nil)
      #expect((try? markers.find()) == 0xfe)
      #expect(markers.hasStrayBytes)
    }
  }

  @Test func `a truncated segment throws, and an invalid length does not`() {
    walk([0xff, 0xdb, 0, 5, 1, 2]) { markers in
      #expect((try? markers.next()) == 0xdb)
      #expect(throws: EndOfBytes()) { try markers.segment() }
      #expect(markers.segmentLength == 5 && markers.left == 4)
    }
    walk([0xff, 0xdb, 0, 1]) { markers in
      #expect((try? markers.next()) == 0xdb)
      #expect((try? markers.segment())?.count == nil)
    }
    walk([1, 2, 0xff]) { markers in
      #expect(throws: EndOfBytes()) { try markers.skipScan() }
    }
  }
}
