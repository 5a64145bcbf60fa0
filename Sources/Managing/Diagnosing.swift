// Diagnosing: loads one source afresh and says what each step found.

import Core
import FoundationEssentials

extension ImageManager: SourceDoctor {
  /// See `SourceDoctor`.
  public func diagnose(_ request: ImageRequest) async throws(ImageError) -> Diagnosis {
    let progress = Lock<LoadProgress?>(nil)
    let start = ContinuousClock.now
    func makeSteps() -> LoadSteps {
      LoadSteps(of: request.source, progress.withLock { $0 }, took: ContinuousClock.now - start)
    }
    do throws(ImageError) {
      let result = try await parts.loader.load(
        LoadRequest(
          url: request.source, trail: request.options.trail, trace: request.options.trace,
          onEnd: { end in progress.withLock { $0 = end } }))
      guard case .fetched(let download) = result else {
        throw .internal(detail: "a 304 without validators")
      }
      var steps = makeSteps()
      steps.addSteps(before: .type)
      try await examine(download, of: request, steps.progress, in: &steps.diagnosis)
      return steps.diagnosis
    } catch {
      if error == .cancelled || error == .draining { throw error }
      var steps = makeSteps()
      steps.addFailure(error)
      return steps.diagnosis
    }
  }

  /// Adds the steps of a source that is loaded.
  private func examine(
    _ download: Download, of request: ImageRequest, _ progress: LoadProgress?,
    in diagnosis: inout Diagnosis
  ) async throws(ImageError) {
    let head = await parts.files.beginning(of: download.file, upTo: FormatSigns.limit)
    let format = head.flatMap { $0.withUnsafeBytes(FormatSigns.format(ofSource:)) }
    let sent = download.origin.contentType.map { "Content-Type \($0), " } ?? ""
    diagnosis.add(.type, found: sent + "bytes of " + (format?.traits.title ?? "no known format"))
    diagnosis.add(.size, in: progress?.timings.download, found: "\(download.file.count) bytes")
    let freshness = parts.freshness.freshness(of: download.origin, for: request)
    let life = "fresh for \(max(freshness.timeToLive(at: parts.now()), 0)) s"
    diagnosis.add(
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
      guard case .memory(let bytes) = described.body,
        let image = try? JSONDecoder().decode(
          Diagnosis.Image.self, from: bytes.withUnsafeBytes { Data($0) })
      else { throw .internal(detail: "a description that cannot be read") }
      diagnosis.image = image
      diagnosis.add(
        .decode, in: ContinuousClock.now - start - (described.report.timings.queue ?? .zero),
        found: "\(image.format), \(image.width)×\(image.height), frames: \(image.frames)"
          + (described.report.isDamaged ? ", damaged" : ""))
    } catch {
      if error == .cancelled || error == .draining { throw error }
      diagnosis.end(.decode, in: ContinuousClock.now - start, with: error)
    }
  }
}

/// The steps of a load, from how far it came.
private struct LoadSteps {
  private typealias Name = Diagnosis.Name

  let url: SourceURL
  let progress: LoadProgress?
  /// The time of the whole load.
  let time: Duration
  var diagnosis: Diagnosis

  init(of url: SourceURL, _ progress: LoadProgress?, took time: Duration) {
    self.url = url
    self.progress = progress
    self.time = time
    diagnosis = Diagnosis(of: url.text)
  }

  /// Adds the steps that succeeded before another one.
  mutating func addSteps(before end: Diagnosis.Name) {
    guard url.scheme.hasOrigin else {
      if end != .file { diagnosis.add(.file, in: time, found: "a regular file") }
      return
    }
    for name in Name.allCases.dropFirst().prefix(while: { $0 != end })
    where name != .tls || progress?.isSecured == true {
      diagnosis.add(name, in: self.time(of: name), found: found(name))
    }
  }

  /// Adds the steps of a load that failed. The last one took the rest of the time.
  mutating func addFailure(_ error: ImageError) {
    let name = failedStep(of: error)
    addSteps(before: name)
    let spent = diagnosis.steps.compactMap { self.time(of: $0.step) }.reduce(.zero, +)
    diagnosis.end(name, in: name == .allowed ? nil : time - spent, with: error)
  }

  private func time(of name: Name) -> Duration? {
    let stages: [Name: Timings.Stage] = [
      .queue: .queue, .name: .dns, .connect: .connect, .tls: .tls, .status: .ttfb,
    ]
    return stages[name].flatMap { progress?.timings[$0] }
  }

  /// What a step that succeeded found.
  private func found(_ name: Name) -> String {
    let hop = progress?.url ?? url
    switch name {
    case .allowed: return SecretMask.masked(hop.text)
    case .name:
      let addresses = progress?.addresses ?? []
      return addresses.isEmpty
        ? "no look-up" : addresses.prefix(8).map { "\($0)" }.joined(separator: ", ")
    case .connect: return "\(hop.host) port \(hop.port)"
    case .tls: return "the certificate is accepted"
    case .status:
      let counts = [("redirects", progress?.redirects ?? 0), ("retries", progress?.retries ?? 0)]
      return "\(progress?.status ?? 0)"
        + counts.filter { $0.1 > 0 }.map { ", \($0): \($1)" }.joined()
    default: return "had its turn"
    }
  }

  /// Returns the step that an error ended.
  private func failedStep(of error: ImageError) -> Name {
    switch error {
    case .sourceTooLarge, .sourceIncomplete: return .size
    case .unsupportedFormat: return .type
    case .sourceTLS: return .tls
    case _ where !url.scheme.hasOrigin: return .file
    case .forbiddenSource where progress == nil, .invalidURL where progress == nil: return .allowed
    case .sourceTimeout where progress == nil: return .name
    default: break
    }
    guard let progress else { return .queue }
    if let status = progress.status { return [200, 203].contains(status) ? .size : .status }
    if progress.addresses == nil { return .name }
    if !progress.isConnected { return .connect }
    return progress.url.scheme == .https && !progress.isSecured ? .tls : .status
  }
}
