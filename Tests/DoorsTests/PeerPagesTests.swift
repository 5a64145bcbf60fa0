// PeerPagesTests: the pages about peers say what their tables say.

import Core
import FoundationEssentials
import Testing

@testable import Doors

@Suite struct PeerPagesTests {
  /// With `PICTOR_WRITE_FILES` in the environment, the pages are written: `make generated`.
  @Test(arguments: Peer.allCases)
  func `a page has the peer's options`(peer: Peer) throws {
    let root = "/" + #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let url = URL(filePath: "\(root)/docs/moving/\(peer.rawValue).md")
    if ProcessInfo.processInfo.environment["PICTOR_WRITE_FILES"] != nil {
      try Data(peer.page.utf8).write(to: url)
    }
    let found = (try? Data(contentsOf: url)).map { String(decoding: $0, as: UTF8.self) }
    #expect(found == peer.page, "make generated writes \(url.lastPathComponent)")
  }
}
