// The downloader's rules in the real program: time-outs, and images behind an open circuit.

import Glibc
import Model
import TestSupport
import Testing

@Suite(.onOwnThreads) final class DownloadRulesTests: OriginSuite {
  @Test func `connecting and the first byte have separate time-outs`() throws {
    // Given
    let pictor = try PictorProcess(
      in: folder, ["--download.connect_timeout", "1s", "--download.first_byte_timeout", "300ms"])
    // The origin accepts TLS connections and never responds, so no request can be sent.
    let deaf = try Origin(answers: false)
    origin.route("/silent", to: .silence)
    // When
    let clients = [
      try pictor.ask("/image?url=\(encoded("https://127.0.0.1:\(deaf.port)/a.jpg"))"),
      try pictor.ask(origin.target("/silent")),
    ]
    // Then: all end before the transfer's time-out of 15 s, as the log confirms
    for client in clients {
      let answer = try client.readAnswer()
      #expect(answer.status == 504 && answer.text.contains("\"source_timeout\""), "\(answer.text)")
    }
    #expect(pictor.log.contains("SSL connection timeout"), "\(pictor.log)")
    #expect(pictor.log.contains("first-byte time-out"), "\(pictor.log)")
    #expect(try pictor.stats().downloads.failed == ["source_timeout": 2])
  }

  @Test func `with an open circuit, cached and stale images are served`() throws {
    // Given a fresh image and a stale one, and a host that refuses connections
    let pictor = try PictorProcess(in: folder)
    let image = try TestImages.jpeg(width: 30, height: 20)
    origin.route("/fresh.jpg", to: .ok(image, headers: ["Cache-Control: max-age=1000"]))
    origin.route("/stale.jpg", to: .ok(image, headers: ["Cache-Control: max-age=0"]))
    for path in ["/fresh.jpg", "/stale.jpg"] {
      #expect(try pictor.get(origin.target(path, adding: "&w=20")).status == 200)
    }
    origin.stop()
    for number in 0..<5 { _ = try pictor.get(origin.target("/down.jpg?\(number)")) }
    #expect(try pictor.stats().downloads.circuitsOpen == 1)
    let reborn = try Origin(port: origin.port)
    // Then they are served in cached sizes and in others
    for path in ["/fresh.jpg", "/stale.jpg"] {
      for width in [20, 10] {
        let answer = try pictor.get(origin.target(path, adding: "&w=\(width)"))
        #expect(answer.status == 200, "\(path) \(width)")
      }
    }
    #expect(reborn.totalRequests == 0)
  }
}
