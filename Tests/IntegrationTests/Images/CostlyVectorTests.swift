// CostlyVectorTests: SVGs that cost far more than their bytes suggest, in the real program.

import TestSupport
import Testing

@Suite(.onOwnThreads) struct CostlyVectorTests {
  @Test
  func `ten widths of a costly SVG are refused without the loss of a worker, a small one is drawn`()
    throws
  {
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
    let pictor = try PictorProcess(in: folder)
    // When
    let answers = try (0..<10).map {
      try pictor.get(origin.target("/a.svg", adding: "&format=png&w=\(1_000 + $0)"))
    }
    // Then: only these variants are refused
    #expect(
      answers.allSatisfy {
        $0.status == 422 && String(decoding: $0.body, as: UTF8.self).contains("too_costly")
      })
    #expect(try pictor.get(origin.target("/a.svg", adding: "&format=png&w=9")).status == 200)
    #expect(try pictor.get(origin.target("/b.jpg", adding: "&w=40")).status == 200)
    #expect(try pictor.stats().imaging.workersLost == 0)
    #expect(try pictor.end() == 0)
  }
}
