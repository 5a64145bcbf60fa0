// ReplayPair: what an old server and this one answer to the same address.

import Core

/// Runs a job on an imaging worker; `nil` if it fails, most likely because the file is no image.
public typealias Rendering = @Sendable (ImageJob) -> ProcessedImage?

/// Two answers to an address, the old server's first.
struct ReplayPair: Sendable {
  let address: String
  /// Status, size in pixels and format of each; the status is 0 without an answer.
  let facts: [[String]]
  /// The bytes of each body.
  let bytes: [Int]
  /// The difference of the pixels of the first frames (RMSE, of 255), for which the own image is
  /// scaled to the old one's size; `nil` if one is no image.
  let difference: Double?

  /// How bad the pair is: another status is worst, then another size, then unlike pixels.
  var badness: Double {
    facts[0][0] != facts[1][0] ? 1_000 : (facts[0][1] != facts[1][1] ? 500 : 0) + (difference ?? 0)
  }
}

/// Asks both servers, and has their answers decoded.
struct ReplayClients: Sendable {
  /// The servers, the old one first, and what precedes addresses there.
  let servers: [(client: ServerClient, prefix: String)]
  let interruption: Interruption
  let render: Rendering

  /// Returns the answers to an address; without one in time the status is 0.
  ///
  /// - Throws: if a server cannot be reached, or on an interruption.
  func answers(to address: String) throws(ServerClient.Failure) -> [ServerAnswer] {
    var answers: [ServerAnswer] = []
    for (client, prefix) in servers {
      do throws(ServerClient.Failure) {
        answers.append(
          try client.request(.get, target: prefix + address, seconds: 60, until: interruption))
      } catch {
        guard case .unanswered = error else { throw error }
        answers.append(ServerAnswer(status: 0, body: []))
      }
    }
    return answers
  }

  /// Compares the answers to an address.
  func pair(_ address: String) throws(ServerClient.Failure) -> ReplayPair {
    let answers = try answers(to: address)
    let images = answers.map { pixels(of: $0.body) }
    var difference: Double?
    if let old = images[0], let size = images[1]?.size,
      let own = size == old.size ? images[1] : pixels(of: answers[1].body, in: old.size)
    {
      let sum = zip(old.samples, own.samples).reduce(0) { sum, pair in
        sum + (Int(pair.0) - Int(pair.1)) * (Int(pair.0) - Int(pair.1))
      }
      difference = (Double(sum) / Double(old.samples.count)).squareRoot()
    }
    let facts = zip(answers, images).map { answer, image in
      let format = answer.body.withUnsafeBytes { FormatSigns.format(of: $0) }
      return ["\(answer.status)", image.map { "\($0.size)" } ?? "-", format?.rawValue ?? "-"]
    }
    return ReplayPair(
      address: address, facts: facts, bytes: answers.map(\.body.count), difference: difference)
  }

  /// Returns red, green and blue of the first frame's pixels, scaled if need be.
  private func pixels(
    of body: [UInt8], in size: PixelSize? = nil
  ) -> (size: PixelSize, samples: [UInt8])? {
    var transform = Transform()
    transform.output.format = .tiff
    transform.output.isAnimated = false
    transform.output.flattens = true
    transform.sizing.fit = .fill
    transform.sizing.width = size?.width
    transform.sizing.height = size?.height
    transform.sizing.enlarge = size != nil
    var region: FileRegion?
    do {
      var file = try MemoryFile(name: "replay")
      try body.withUnsafeBytes { try file.append($0) }
      region = try file.sealed()
    } catch {}
    guard
      let image = region.flatMap({
        render(ImageJob(file: $0, transform: transform, density: 1))
      }), let found = image.rendered?.size, case .memory(let bytes) = image.body
    else { return nil }
    return bytes.withUnsafeBytes { tiff in
      // The pixels are between header and directory, and followed by a byte if their number is odd.
      guard let end = try? ByteReader(tiff, order: .little).number(at: 4, width: 4),
        let bands = [1, 3].first(where: { (0...1).contains(end - 8 - $0 * found.pixels) }),
        let samples = try? ByteReader(tiff).part(at: 8, count: bands * found.pixels)
      else { return nil }
      return (found, bands == 3 ? Array(samples) : samples.flatMap { [$0, $0, $0] })
    }
  }
}
