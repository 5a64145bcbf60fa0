// Diagnosis: what a load of one source met, step by step, for `POST /admin/doctor`.

/// What a load of a source met: its steps in order, up to the first that failed.
public struct Diagnosis: Hashable, Sendable, Codable {
  /// One step.
  public struct Step: Hashable, Sendable, Codable {
    /// The steps in their order. A source without an origin has `file` in place of the first seven.
    public enum Name: String, Hashable, Sendable, Codable, CaseIterable {
      case file, allowed, queue, name, connect, tls, status, type, size, freshness, decode
    }

    /// The step.
    public let name: Name
    /// Whether it succeeded.
    public let isSound: Bool
    /// How long it took, in milliseconds; `nil` for one that takes no time.
    public var milliseconds: Double?
    /// What it found, or why it failed.
    public let found: String
    /// What decides it: keys of the configuration, sections of RFCs. Of a failed step, the key that
    /// would change the result, if there is one.
    public let rule: String

    private enum CodingKeys: String, CodingKey {
      case found, rule
      case name = "step"
      case isSound = "ok"
      case milliseconds = "ms"
    }

    /// Creates a step.
    public init(
      _ name: Name, isSound: Bool = true, in time: Duration? = nil, found: String,
      rule: String? = nil
    ) {
      self.name = name
      self.isSound = isSound
      milliseconds = time.map { max(($0 / .microseconds(100)).rounded(), 0) / 10 }
      self.found = found
      self.rule = rule ?? name.rule
    }

    /// Creates the step that an error ended.
    public init(_ name: Name, in time: Duration?, error: ImageError) {
      self.init(
        name, isSound: false, in: time, found: "\(error.code): \(error.logDetail ?? error.message)",
        rule: error.decidingKey)
    }
  }

  /// What the image is, as `/info` says.
  public struct Image: Hashable, Sendable, Codable {
    /// The name of the format.
    public let format: String
    /// Pixels, upright.
    public let width: Int
    /// Pixels, upright.
    public let height: Int
    /// Frames; 1 of a still image.
    public let frames: Int
  }

  /// The steps, of which only the last may have failed.
  public var steps: [Step] = []
  /// The image; `nil` if it is not decoded.
  public var image: Image?
  /// Whether every step succeeded.
  public var isSound: Bool { steps.last?.isSound == true }

  private enum CodingKeys: CodingKey { case steps, image }

  /// Creates a diagnosis without steps.
  public init() {}
}

extension Diagnosis.Step.Name {
  /// What decides the step, if it is not its result.
  var rule: String {
    switch self {
    case .file: "sources.local_root"
    case .allowed: "download.allow_hosts, download.ports, sources.allow"
    case .queue: "download.limit, download.limit_per_host"
    case .name: "download.connect_timeout"
    case .connect: "download.connect_timeout, download.allow_networks"
    case .tls: "download.ca_file"
    case .status: "download.first_byte_timeout (RFC 9110, section 15)"
    case .type: "imaging.formats (RFC 9110, section 8.3)"
    case .size: "download.maximum_bytes"
    case .freshness: "freshness.default_lifetime"
    case .decode: "imaging.maximum_pixels, imaging.deadline"
    }
  }
}

/// Diagnoses sources by loading them.
public protocol SourceDoctor: Sendable {
  /// Loads the source of a request as a miss does, but past all tiers, stores nothing, and decodes
  /// all of its pixels.
  ///
  /// - Throws: `cancelled` and `draining`. All other errors are part of the diagnosis.
  func diagnose(_ request: ImageRequest) async throws(ImageError) -> Diagnosis
}
