// Diagnosing: loads one source afresh and says what each step found.

import Core
import FoundationEssentials

extension ImageManager: SourceDoctor {
  /// See `SourceDoctor`.
  public func diagnose(_ request: ImageRequest) async throws(ImageError) -> Diagnosis {
    let progress = Lock<LoadProgress?>(nil)
    let start = ContinuousClock.now
    let result: Result<LoadResult, ImageError>
    do throws(ImageError) {
      result = .success(
        try await parts.loader.load(
          LoadRequest(
            url: request.source, trail: request.options.trail, trace: request.options.trace,
            onEnd: { end in progress.withLock { $0 = end } })))
    } catch {
      if error == .cancelled || error == .draining { throw error }
      result = .failure(error)
    }
    var chart = Chart(
      url: request.source, progress: progress.withLock { $0 }, time: ContinuousClock.now - start)
    switch result {
    case .failure(let error): chart.fail(error)
    case .success(.notModified): chart.fail(.internal(detail: "a 304 without validators"))
    case .success(.fetched(let download)):
      chart.pass(before: .type)
      try await examine(download, of: request, in: &chart)
    }
    return chart.diagnosis
  }

  /// Adds the steps of a source that is loaded.
  private func examine(
    _ download: Download, of request: ImageRequest, in chart: inout Chart
  ) async throws(ImageError) {
    let head = await parts.files.beginning(of: download.file, upTo: FormatSigns.limit)
    let format = head.flatMap { $0.withUnsafeBytes(FormatSigns.format(ofSource:)) }
    let sent = download.origin.contentType.map { "Content-Type \($0), " } ?? ""
    chart.add(.type, found: sent + "bytes of " + (format?.traits.title ?? "no known format"))
    chart.add(
      .size, in: chart.progress?.timings.download, found: "\(download.file.count) bytes")
    let freshness = parts.freshness.freshness(of: download.origin, for: request)
    let life = "fresh for \(max(freshness.timeToLive(at: parts.now()), 0)) s"
    chart.add(
      .freshness,
      found: (freshness.isStorable ? life : "not stored") + ", age \(freshness.initialAge) s",
      rule: parts.freshness.policy.rule(
        of: download.origin, from: request.source, at: Moment(parts.now())))
    let start = ContinuousClock.now
    do throws(ImageError) {
      let described = try await parts.processor.process(
        ImageJob(
          file: download.file, transform: request.transform, density: request.source.density,
          verifies: true))
      let time = ContinuousClock.now - start - (described.report.timings.queue ?? .zero)
      guard case .memory(let bytes) = described.body,
        let image = try? JSONDecoder().decode(
          Diagnosis.Image.self, from: bytes.withUnsafeBytes { Data($0) })
      else { throw .internal(detail: "a description that cannot be read") }
      chart.diagnosis.image = image
      chart.add(
        .decode, in: time,
        found: "\(image.format), \(image.width)×\(image.height), frames: \(image.frames)"
          + (described.report.isDamaged ? ", damaged" : ""))
    } catch {
      if error == .cancelled || error == .draining { throw error }
      chart.add(.decode, in: ContinuousClock.now - start, error: error)
    }
  }
}

private typealias Name = Diagnosis.Step.Name

/// The steps of a load, from how far it came.
private struct Chart {
  let url: SourceURL
  let progress: LoadProgress?
  /// The time of the whole load.
  let time: Duration
  var diagnosis = Diagnosis()

  init(url: SourceURL, progress: LoadProgress?, time: Duration) {
    self.url = url
    self.progress = progress
    self.time = time
  }

  mutating func add(
    _ name: Name, in time: Duration? = nil, found: String, rule: String? = nil
  ) {
    diagnosis.steps.append(Diagnosis.Step(name, in: time, found: found, rule: rule))
  }

  mutating func add(_ name: Name, in time: Duration?, error: ImageError) {
    diagnosis.steps.append(Diagnosis.Step(name, in: time, error: error))
  }

  /// Adds the steps that succeeded before another one.
  mutating func pass(before end: Name) {
    guard url.scheme.hasOrigin else {
      if end != .file { add(.file, in: time, found: "a regular file") }
      return
    }
    let names = Name.allCases.dropFirst().prefix { $0 != end }
    for name in names where name != .tls || progress?.isSecured == true {
      add(name, in: progress?.timings[name], found: found(name))
    }
  }

  /// Adds the steps of a load that failed. The last one took the rest of the time.
  mutating func fail(_ error: ImageError) {
    let name = step(of: error)
    pass(before: name)
    let spent = diagnosis.steps.reduce(Duration.zero) {
      $0 + (progress?.timings[$1.name] ?? .zero)
    }
    add(name, in: name == .allowed ? nil : time - spent, error: error)
  }

  /// What a step that succeeded found.
  private func found(_ name: Name) -> String {
    let hop = progress?.url
    switch name {
    case .allowed: return SecretMask.masked((hop ?? url).text)
    case .queue: return "had its turn"
    case .name:
      let addresses = progress?.addresses ?? []
      return addresses.isEmpty
        ? "no look-up" : addresses.prefix(8).map { "\($0)" }.joined(separator: ", ")
    case .connect: return "\(hop?.host ?? "") port \(hop?.port ?? 0)"
    case .tls: return "the certificate is accepted"
    case .status:
      let (redirects, retries) = (progress?.redirects ?? 0, progress?.retries ?? 0)
      return "\(progress?.status ?? 0)" + (redirects > 0 ? ", redirects: \(redirects)" : "")
        + (retries > 0 ? ", retries: \(retries)" : "")
    default: return ""
    }
  }

  /// Returns the step that an error ended.
  private func step(of error: ImageError) -> Name {
    switch error {
    case .sourceTooLarge, .sourceIncomplete: return .size
    case .unsupportedFormat: return .type
    default: break
    }
    guard url.scheme.hasOrigin else { return .file }
    guard let progress else {
      return switch error {
      case .forbiddenSource, .invalidURL: .allowed
      case .sourceTimeout: .name
      default: .queue
      }
    }
    if let status = progress.status { return [200, 203].contains(status) ? .size : .status }
    if progress.addresses == nil { return .name }
    if !progress.isConnected { return .connect }
    return progress.url.scheme == .https && !progress.isSecured ? .tls : .status
  }
}

extension Timings {
  /// The time of a step of a load; `nil` for one without.
  fileprivate subscript(name: Name) -> Duration? {
    switch name {
    case .queue: queue
    case .name: dns
    case .connect: connect
    case .tls: tls
    case .status: ttfb
    default: nil
    }
  }
}
