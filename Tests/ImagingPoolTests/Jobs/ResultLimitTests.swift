// ResultLimitTests: results of real workers within the limits of a result.

import Core
import ImagingPool
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ResultLimitTests {
  @Test func `a side of a pixel is not scaled down below it, however small the limits are`()
    async throws
  {
    var configuration = PoolSupport.configuration()
    configuration.limits.maximumResultPixels = 150
    try await PoolSupport.withPool(configuration) { pool in
      for (width, height) in [(64, 48), (300, 2), (2, 300), (500, 4), (1, 900), (1, 1)] {
        for limit in [1, 3, 4, 40, 100, 399, 400, 1_000, Sizing.defaultLimitBytes] {
          var transform = Transform()
          transform.limitBytes = limit
          let job = try PoolSupport.job(width: width, height: height, to: transform)
          let image = try await pool.process(job)
          #expect(image.rendered != nil, "\(width)×\(height), \(limit)")
        }
      }
      #expect(pool.figures.workersLost == 0)
    }
  }
}
