// Diagnosis: what a load of one source met, step by step, for `POST /admin/doctor`.

/// What a load of a source met: its steps in order, up to the first that failed.
public struct Diagnosis: Hashable, Sendable, Codable {
  /// A step. A source without an origin has `file` in place of those before `type`.
  public enum Name: String, Hashable, Sendable, Codable, CaseIterable {
    case file, allowed, queue, name, connect, tls, status, type, size, freshness, decode

    /// What decides the step: keys of the configuration, sections of RFCs.
    fileprivate var rule: String {
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

  /// What became of a step.
  public struct Step: Hashable, Sendable, Codable {
    /// The step.
    public let step: Name
    /// Whether it succeeded.
    public let ok: Bool
    /// How long it took, in milliseconds; `nil` for one that takes no time.
    public let ms: Double?
    /// What it found, or why it failed.
    public let found: String
    /// What decides it; of a failed step, the key that would change the result, if there is one.
    public let rule: String
  }

  /// What the image is, as `/info` says, in pixels.
  public struct Image: Hashable, Sendable, Codable {
    /// The name of the format.
    public let format: String
    /// The upright size.
    public let width: Int, height: Int
    /// 1 of a still image.
    public let frames: Int
  }

  /// The source's canonical URL.
  public let url: String
  /// Whether every step succeeded.
  public private(set) var ok = true
  /// The steps, of which only the last may have failed.
  public private(set) var steps: [Step] = []
  /// The image; `nil` if it is not decoded.
  public var image: Image?

  /// Creates a diagnosis without steps.
  public init(of url: String) { self.url = SecretMask.withoutUsers(url) }

  /// Adds a step that succeeded.
  public mutating func add(
    _ name: Name, in time: Duration? = nil, found: String, rule: String? = nil
  ) {
    steps.append(
      Step(step: name, ok: true, ms: Self.ms(time), found: found, rule: rule ?? name.rule))
  }

  /// Adds the step that an error ended.
  public mutating func end(_ name: Name, in time: Duration? = nil, with error: ImageError) {
    ok = false
    steps.append(
      Step(
        step: name, ok: false, ms: Self.ms(time),
        found: "\(error.code): \(error.logDetail ?? error.message)",
        rule: error.decidingKey ?? name.rule))
  }

  private static func ms(_ time: Duration?) -> Double? {
    time.map { max(($0 / .microseconds(100)).rounded(), 0) / 10 }
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
