// FacesTests: faces are kept with their source, and sealed workers find them.

import Core
import TestSupport
import Testing

@testable import ImagingPool

@Suite(.onOwnThreads, .timeLimit(.minutes(2))) struct FacesTests {
  @Test(.ifSealable) func `ten sizes of a source need one search, in sealed workers`() async throws
  {
    // given
    let photo = try PoolSupport.file(
      of: TestImages.encode(
        Pixels.heads(width: 600, height: 300, [(150, 150, 60)]), as: ".png"))
    var configuration = PoolSupport.configuration(workers: 2)
    configuration.settings.sandbox = .required
    func job(_ source: Int, side: Int, frame: Int? = nil) -> ImageJob {
      var transform = Transform()
      (transform.width, transform.height, transform.fit) = (side, 2 * side, .cover)
      (transform.position, transform.frame) = (.faces, frame)
      return ImageJob(
        file: photo, transform: transform, density: 1,
        source: SourceIdentity(key: CacheKey(text: "https://h/\(source).png"), version: 1))
    }
    try await PoolSupport.withPool(configuration) { pool in
      // when
      for side in 40..<50 {
        let faces = try await pool.process(job(1, side: side)).report.faces
        #expect(faces?.count == 1)
      }
      // then
      #expect(pool.figures.faceSearches == 1)
      // Another source, and another frame, are searched.
      _ = try await pool.process(job(2, side: 40))
      _ = try await pool.process(job(1, side: 40, frame: 0))
      #expect(pool.figures.faceSearches == 3)
    }
  }
}
