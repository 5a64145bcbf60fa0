// Miss: the state of one miss, and what a step makes of it.

import Model

/// The result of a variant flight.
struct VariantResult: Sendable {
  let variant: Variant
  let status: CacheStatus
  let timings: Timings
  /// What the timings are of. Several results may have them.
  var work = SharedWork()

  /// The result as it is answered to the request that it was made for.
  var delivery: ImageDelivery {
    ImageDelivery(variant: variant, cacheStatus: status, timings: timings)
  }
}

/// What the requests of a variant flight are answered with.
struct FlightDeliveries: Sendable {
  /// For the request that started the flight.
  let first: ImageDelivery
  /// For all that joined it.
  let joined: ImageDelivery

  init(_ result: VariantResult) {
    let work = result.work
    first = ImageDelivery(
      variant: result.variant, cacheStatus: result.status, timings: result.timings, of: work)
    joined = ImageDelivery(
      variant: result.variant, cacheStatus: result.status.collapsed, timings: result.timings,
      of: work, isShared: true)
  }

  /// Returns what a request is answered with that `hasJoined` the flight, or has started it.
  func delivery(hasJoined: Bool) -> ImageDelivery { hasJoined ? joined : first }
}

/// A variant that is new in the cache.
struct NewVariant: Sendable {
  /// How a variant was obtained.
  enum Making: Sendable {
    /// A cached variant got the freshness of its source.
    case renewed
    /// The source was passed through.
    case passedThrough
    /// An imaging worker rendered the variant.
    case rendered(ProcessedImage)
    /// An equivalent image replaced the rendered one.
    case substituted
  }

  let variant: Variant
  let making: Making
}

/// A request that memory could not answer, with what the steps have found so far.
struct Miss: Sendable {
  let request: ImageRequest
  /// The flight's participant, which brings the priority of its requests.
  let participant: FlightParticipant
  /// The source that the request is loading already, if any.
  let heldSource: HeldSource?
  /// The time that the steps have spent.
  var timings = Timings()
  /// The current variant in memory that is too stale for the request.
  var inMemory: Variant?
  /// The current variant on disk that is too stale for the request.
  var onDisk: Variant?
  /// The source, once it is loaded.
  var loaded: LoadedSource?
  /// Whether another request had started the source's flight.
  var isCollapsed = false
  /// The source of the watermark, once it is loaded.
  var watermark: Source?
  /// The new variant, once there is one.
  var made: NewVariant?

  init(_ request: ImageRequest, participant: FlightParticipant, held: HeldSource? = nil) {
    self.request = request
    self.participant = participant
    heldSource = held
  }

  /// Whether a tier has a stale variant.
  var hasEntry: Bool { inMemory != nil || onDisk != nil }

  /// The cached variant that can take over the freshness of the loaded source and watermark: it is
  /// intact and was rendered from these versions. Prefers memory: a large variant on disk is a file
  /// and cannot be renewed.
  var renewable: Variant? {
    guard let source = loaded?.source, let cached = inMemory ?? onDisk, case .memory = cached.body,
      cached.isRendered(from: source), !cached.info.isDamaged,
      cached.info.watermarkVersion == watermark?.version ?? 0
    else { return nil }
    return cached
  }
}

/// What a step makes of a miss.
enum StepOutcome {
  /// The step has no response. The next step continues.
  case next
  /// The response.
  case response(VariantResult)
  /// The response is the variant of another request, while the AVIF is encoded in the background.
  case fallback(ImageRequest, HeldSource?)
}

/// One step of a miss.
protocol MissStep: Sendable {
  /// Answers the miss, adds what it finds to the miss, or does nothing.
  ///
  /// - Throws: the failure that ends the miss.
  func run(_ miss: inout Miss) async throws(ImageError) -> StepOutcome
  /// The step's name in an explanation.
  var name: String { get }
  /// Returns what `run` would do, without an effect. An empty reason is not shown.
  func plan(_ plan: inout MissPlan) async -> PlannedOutcome
}
