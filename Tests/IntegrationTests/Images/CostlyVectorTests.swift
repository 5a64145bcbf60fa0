// CostlyVectorTests: SVGs that cost far more than their bytes suggest, in the real program.

import TestSupport
import Testing

@Suite(.onOwnThreads) struct CostlyVectorTests {
  @Test func `widths of a costly SVG end within seconds, and others are served`() throws {
    // Given: a filter within content that is used 200 times
    let folder = try TemporaryFolder()
    let origin = try Origin()
    let uses = String(repeating: ##"<use href="#a"/>"##, count: 200)
    let svg =
      ##"<svg xmlns="http://www.w3.org/2000/svg" width="800" height="600"><defs><filter id="f">"##
      + ##"<feTurbulence baseFrequency="0.05" numOctaves="9"/></filter>"##
      + ##"<rect id="a" width="800" height="600" filter="url(#f)"/></defs>\##(uses)</svg>"##
    origin.serve("/a.svg", bytes: Array(svg.utf8))
    origin.serve("/b.jpg", bytes: try TestImages.jpeg(width: 80, height: 60))
    let pictor = try PictorProcess(in: folder, ["--imaging.processor_time", "2s"])
    func get(_ width: Int) throws -> HTTPAnswer {
      try pictor.get(origin.target("/a.svg", adding: "&format=png&w=\(width)"))
    }
    #expect(try get(9).status == 200)
    // When: two variants take a second each, the source is known for it
    for width in 1_000..<1_010 {
      let answer = try get(width)
      #expect(answer.status == 422)
      #expect(String(decoding: answer.body, as: UTF8.self).contains("too_costly"))
    }
    // Then
    #expect(try pictor.stats().imaging.workersLost == 2)
    #expect(try get(9).status == 200)
    #expect(try pictor.get(origin.target("/b.jpg", adding: "&w=40")).status == 200)
    #expect(try pictor.end() == 0)
  }
}
