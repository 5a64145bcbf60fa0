// PeerPagesTests: what holds for each peer: its page, its table of options, its paths.

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

  /// An option that is no longer documented is missed here.
  @Test(
    arguments: [
      .imgproxy: 172, .thumbor: 57, .imagor: 75, .cloudflare: 69, .weserv: 80, .ipx: 60,
      .imgix: 213, .imaginary: 46, .nextjs: 11,
    ] as [Peer: Int])
  func `all known options have a row`(peer: Peer, count: Int) {
    #expect(peer.rows.flatMap(\.names).count == count)
  }

  @Test(arguments: Peer.allCases)
  func `an option has one row`(peer: Peer) {
    // These have a row for some of their values.
    let many = [.thumbor, .imagor].contains(peer) ? ["trim", "proportion"] : []
    let names = peer.rows.flatMap(\.names).filter { name in !many.contains { name.hasPrefix($0) } }
    #expect(Set(names).count == names.count)
  }

  @Test(
    arguments: [
      (.cloudflare, ["/", "/cdn-cgi/trace", "/cdn-cgi/images/w=8/a.jpg", "/acc/id/w=8"]),
      (.ipx, ["/", "/image", "/sub/bliss.jpg", "/w_9", "/admin/purge"]),
      (
        .nextjs,
        ["/", "/_next/images", "/_next/image/x", "/_next/data", "/image"].map {
          $0 + "?url=%2Fa.jpg&w=640&q=75"
        }
      ),
      (.weserv, ["/", "/?w=9", "/?url=", "/image?url=a", "/x?url=a"]),
      (
        .imaginary,
        ["/", "/health", "/form", "/other", "/resize/a", "//resize", "/images/resize"]
      ), (.imgix, ["/"]), (.imgproxy, ["/", "/health", ""]),
    ] as [(Peer, [String])])
  func `a door leaves other paths alone`(peer: Peer, others: [String]) {
    let kit = DoorKit(door: peer.door(DoorOptions()), form: "*", constants: [:])
    for other in others { #expect(!kit.door.claims(kit.address(other)), "\(other)") }
  }
}
