// World: an origin whose images change, vanish and come back as the model test decides, and workers
// whose results name the bytes they received.

import Core
import TestSupport

/// The freshness terms that an origin returns for an image.
struct Terms {
  var lifetime = 60
  var staleWhileRevalidate = 0
  var staleIfError = 0
  var mustRevalidate = false
  var noStore = false

  /// The `Cache-Control` field.
  var text: String {
    if noStore { return "no-store" }
    return "max-age=\(lifetime), stale-while-revalidate=\(staleWhileRevalidate), "
      + "stale-if-error=\(staleIfError)" + (mustRevalidate ? ", must-revalidate" : "")
  }
}

/// One request to the origin and its outcome.
struct Load {
  enum Outcome {
    /// These bytes are current; a 304 does not send them.
    case right(version: Int, Terms, isSent: Bool)
    case failed
    case gone
  }

  let number: Int
  let time: UnixTime
  let outcome: Outcome
}

/// The images of an origin, by number, and the requests to it.
final class World: ImageLoader, ImageProcessor {
  enum Health { case up, down, gone }

  struct Image {
    var version = 1
    var terms = Terms()
    var health = Health.up
  }

  private struct State {
    var images: [Image]
    var loads: [Load] = []
  }

  let clock: ManualClock
  private let state: Lock<State>

  init(images: Int, clock: ManualClock) {
    self.clock = clock
    state = Lock(State(images: Array(repeating: Image(), count: images)))
  }

  static func url(_ number: Int) -> String {
    "https://host\(number % 4).example/\(number % 2 == 0 ? "even" : "odd")/\(number).jpg"
  }

  func image(_ number: Int) -> Image { state.withLock { $0.images[number] } }

  func change(_ number: Int, by change: (inout Image) -> Void) {
    state.withLock { change(&$0.images[number]) }
  }

  private static func etag(_ image: Image) -> String { "\"\(image.version)\"" }

  /// Returns the requests since the last call.
  func takeLoads() -> [Load] {
    state.withLock { state in
      defer { state.loads = [] }
      return state.loads
    }
  }

  func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult {
    guard let name = request.url.fileName.split(separator: ".").first, let number = Int(name) else {
      throw .internal(detail: "a URL that does not belong to the test")
    }
    let image = state.withLock { state in
      let image = state.images[number]
      let outcome: Load.Outcome =
        switch image.health {
        case .up:
          .right(
            version: image.version, image.terms,
            isSent: request.validators?.etag != Self.etag(image))
        case .down: .failed
        case .gone: .gone
        }
      state.loads.append(Load(number: number, time: clock.now, outcome: outcome))
      return image
    }
    switch image.health {
    case .down: throw .sourceError(status: 503)
    case .gone: throw .sourceNotFound(status: 404)
    case .up: break
    }
    var origin = OriginResponse(status: 200)
    origin.etag = Self.etag(image)
    origin.cacheControl = image.terms.text
    if request.validators?.etag == origin.etag {
      origin.status = 304
      return .notModified(origin, Timings())
    }
    do {
      let file = try FileRegion.sealed(Array("\(number) \(image.version)".utf8))
      return .fetched(Download(file: file, origin: origin, timings: Timings()))
    } catch {
      throw .internal(detail: "no memory file: \(error)")
    }
  }

  /// Returns the source's bytes with the requested width: `number version width`.
  func process(_ job: ImageJob) async throws(ImageError) -> ProcessedImage {
    guard let source = try? ImageBytes(contentsOf: job.file) else {
      throw .internal(detail: "the source cannot be read")
    }
    let text =
      source.withUnsafeBytes { String(decoding: $0, as: UTF8.self) }
      + " \(job.transform.width ?? 0)"
    return ProcessedImage(
      body: .memory(Array(text.utf8).withUnsafeBytes { ImageBytes(copying: $0) }),
      report: RenderReport(
        content: .image(
          RenderedImage(format: .jpeg, size: PixelSize(width: 1, height: 1), density: 1)),
        digest: text))
  }
}
