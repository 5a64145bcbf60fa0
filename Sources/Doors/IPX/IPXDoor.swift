// IPXDoor: the addresses of ipx, the image server of Nuxt.

import Core

/// The door of ipx 4: `/MODIFIERS/ID` and `/_ipx/MODIFIERS/ID`.
public struct IPXDoor: Door {
  /// The name of the peer.
  public let name = "ipx"
  private let sources: SourceRules
  private static let prefix = "/_ipx/"

  /// The rows of the peer's page.
  public static var rows: [DoorOptionRow] { IPXDraft.table.map(\.row) }

  /// Creates the door.
  public init(_ options: DoorOptions) { sources = SourceRules(options) }

  /// Whether the path begins with `/_ipx/`, or with `_` or known modifiers and has an ID.
  public func claims(_ address: DoorAddress) -> Bool {
    guard !address.path.hasPrefix(Self.prefix) else { return true }
    let (modifiers, id) = Self.parts(of: address.path)
    return !id.isEmpty
      && (modifiers == "_"
        || Self.split(modifiers).contains { IPXDraft.options.has($0.name) })
  }

  /// Returns the modifiers and the ID, still encoded.
  private static func parts(of path: String) -> (modifiers: Substring, id: Substring) {
    let rest = path.dropFirst(path.hasPrefix(prefix) ? prefix.count : 1)
    let modifiers = rest.prefix { $0 != "/" }
    return (modifiers, rest.dropFirst(modifiers.count + 1))
  }

  /// Returns the modifiers, whose arguments `_`, `=` or `:` separate.
  private static func split(_ modifiers: Substring) -> [(name: String, arguments: [String])] {
    modifiers.split { $0 == "&" || $0 == "," }.map { modifier in
      let parts = modifier.split(omittingEmptySubsequences: false) { "_=:".contains($0) }
      return (String(parts[0]), parts.dropFirst().map(\.percentDecoded))
    }
  }

  /// Translates an address. Unknown modifiers are ignored; the query counts for nothing.
  public func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    let (modifiers, encoded) = Self.parts(of: address.path)
    let id = encoded.percentDecoded
    guard !modifiers.isEmpty else {
      throw Self.refusal(400, "IPX_MISSING_MODIFIERS", "Modifiers are missing: \(id)")
    }
    guard id.contains(where: { $0 != "/" }) else {
      throw Self.refusal(400, "IPX_MISSING_ID", "Resource id is missing: \(address.path)")
    }
    var draft = IPXDraft()
    for (name, arguments) in modifiers == "_" ? [] : Self.split(modifiers) {
      do {
        if try IPXDraft.options.read(name, arguments, into: &draft) { continue }
      } catch {
        let isMissing = arguments.isEmpty && !error.isUnsupported
        throw Self.refusal(
          400, isMissing ? "IPX_MISSING_MODIFIER_ARG" : "IPX_INVALID_MODIFIER_ARG",
          "\(name)_\(arguments.joined(separator: "_")): \(error.reason)")
      }
      draft.translation.notes.append(DoorNote(name, .ignored("ipx has no such modifier")))
    }
    // The ID is decoded, so a path is encoded again; a URL has its query.
    let path =
      SourceRules.isWeb(id) ? id : "/" + PercentEncoding.encodePath(String(id.drop { $0 == "/" }))
    draft.translation["url"] = try sources.url(of: path) { fault in
      switch fault {
      case .invalid(let reason): Self.refusal(400, "IPX_INVALID_URL", reason)
      case .forbidden(let reason):
        Self.refusal(
          403, SourceRules.isWeb(id) ? "IPX_FORBIDDEN_HOST" : "IPX_FORBIDDEN_PATH", reason)
      }
    }
    return draft.finished()
  }

  /// Returns ipx's JSON.
  public func answer(to error: ImageError) -> DoorAnswer {
    let (status, code) =
      switch error.cause {
      case .sourceNotFound: (404, "IPX_RESOURCE_NOT_FOUND")
      case .sourceError(let status, _, _):
        (400...599 ~= status ? status : 502, "IPX_FETCH_ERROR")
      case .tooManyRedirects: (502, "IPX_TOO_MANY_REDIRECTS")
      case .invalidURL: (400, "IPX_INVALID_URL")
      case .forbiddenSource: (403, "IPX_FORBIDDEN_HOST")
      case .unsupportedFormat, .unsupportedKind, .undecodable: (400, "IPX_INVALID_IMAGE")
      case .invalidParameter: (400, "IPX_INVALID_MODIFIER")
      default: (error.status, "IPX_ERROR")
      }
    return Self.refusal(status, code, error.message)
  }

  private static func refusal(_ status: Int, _ code: String, _ message: String) -> DoorAnswer {
    DoorAnswer(
      status: status, contentType: "application/json",
      body: "{\"status\":\(status),\"statusText\":\(code.json),\"message\":\(message.json)}",
      reason: message)
  }
}
