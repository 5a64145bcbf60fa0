// WeservDoor: the addresses of weserv (wsrv.nl, images.weserv.nl).

import Core

/// The door of weserv: `/?url=…` and nginx's `/images?url=…`.
public struct WeservDoor: Door {
  /// The name of the peer.
  public let name = "weserv"
  private let sources: SourceRules

  /// The rows of the peer's page.
  public static var rows: [DoorOptionRow] { WeservDraft.table.map(\.row) }

  /// Creates the door.
  public init(_ options: DoorOptions) { sources = SourceRules(options) }

  /// Whether the path is one of weserv's two, and there is a source: `/` is also Pictor's page.
  public func claims(_ address: DoorAddress) -> Bool {
    (address.path == "/" || address.path == "/images")
      && address.query.queryItems().contains { $0.name == "url" && !$0.value.isEmpty }
  }

  /// Translates an address. Unknown parameters and invalid values are ignored, as weserv does; of
  /// repeated parameters the first counts.
  public func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    var draft = WeservDraft()
    var source: String?
    var seen: Set<String> = []
    for (name, value) in address.query.queryItems() where seen.insert(name).inserted {
      if name == "url" {
        source = value
        continue
      }
      do { try WeservDraft.options.read(name, [value], into: &draft) } catch {
        if error.isUnsupported { throw Self.refusal(400, "\(name)='\(value)': \(error.reason)") }
        let standing = DoorStanding.ignored("weserv takes only " + error.reason)
        draft.translation.notes.append(DoorNote(name, standing))
      }
    }
    let url = try url(of: source ?? "")
    do {
      var translation = try draft.finished()
      translation["url"] = url
      return translation
    } catch {
      throw Self.refusal(400, error.reason)
    }
  }

  private func url(of source: String) throws(DoorAnswer) -> String {
    // `ssl:` is how weserv once wrote `https://`.
    let isSecure = source.hasPrefix("ssl:")
    let full = isSecure ? "https://" + source.dropFirst(4).drop { $0 == "/" } : source
    return try sources.url(of: full, areHosts: true) { fault in
      switch fault {
      case .invalid(let why): Self.refusal(400, "Unable to parse URI", reason: "url: " + why)
      case .forbidden(let why): Self.refusal(404, Self.blocked, reason: "url: " + why)
      }
    }
  }

  private static let blocked =
    "The hostname of the origin is unresolvable (DNS) or blocked by policy."

  /// Returns weserv's JSON.
  public func answer(to error: ImageError) -> DoorAnswer {
    let (status, message) =
      switch error.cause {
      case .sourceNotFound(let status), .sourceError(let status, _, _):
        (404, "The requested URL returned error: \(status)")
      case .sourceTimeout: (404, "The requested URL timed out.")
      case .sourceUnreachable, .sourceTLS, .forbiddenSource: (404, Self.blocked)
      case .tooManyRedirects(let limit): (404, "Will not follow more than \(limit) redirects")
      case .sourceTooLarge(let limit, _):
        (404, "The image is too large to be downloaded. Max image size: \(limit) bytes")
      case .unsupportedFormat, .unsupportedKind, .undecodable:
        (404, "Invalid or unsupported image format. Is it a valid image?")
      case .tooManyPixels(_, let limit):
        (413, "Input image exceeds pixel limit. Width x height should be less than \(limit)")
      case .invalidURL: (400, "Unable to parse URI")
      default: (error.status, error.message)
      }
    return Self.refusal(status, message, reason: error.message)
  }

  private static func refusal(_ status: Int, _ message: String, reason: String? = nil)
    -> DoorAnswer
  {
    DoorAnswer(
      status: status, contentType: "application/json",
      body: "{\"status\":\"error\",\"code\":\(status),\"message\":\(message.json)}",
      reason: reason ?? message)
  }
}
