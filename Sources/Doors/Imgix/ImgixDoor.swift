// ImgixDoor: the addresses of imgix.

import Core

/// The door of imgix: `/PATH?PARAMETERS` below the base URL, and its web proxy's `/ENCODED_URL?…`.
public struct ImgixDoor: Door {
  /// The name of the peer.
  public let name = "imgix"
  private let sources: SourceRules
  private let keys: [[UInt8]]

  /// The rows of the peer's page.
  public static var rows: [DoorOptionRow] { ImgixDraft.table.map(\.row) }

  /// Creates the door.
  public init(_ options: DoorOptions) { (sources, keys) = (SourceRules(options), options.keys) }

  /// Claims every path but `/`, which is Pictor's page.
  public func claims(_ address: DoorAddress) -> Bool { address.path != "/" }

  /// Translates an address. Unknown parameters and invalid values are ignored, as imgix does; of
  /// repeated parameters the first counts.
  public func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    guard keys.isEmpty || isSigned(address) else {
      throw Self.refusal(403, "s: the signature is missing, or of another address or key")
    }
    var draft = ImgixDraft()
    draft.translation.isSigned = !keys.isEmpty
    var seen: Set<String> = []
    for (name, value) in address.query.queryItems() {
      let (name, value) = try Self.decoded(name, value)
      guard name == "auto" || seen.insert(name).inserted else { continue }
      // The words of `auto` add up; those of `fit` after the first are fallbacks without a face.
      let words = name == "auto" || name == "fit" ? value.split(separator: ",") : [value[...]]
      for word in name == "fit" ? words.prefix(1) : words[...] {
        do { try ImgixDraft.options.read(name, [String(word)], into: &draft) } catch {
          if error.isUnsupported { throw Self.refusal(400, "\(name)='\(word)': \(error.reason)") }
          let standing = DoorStanding.ignored("imgix takes only " + error.reason)
          draft.translation.notes.append(DoorNote(name, standing))
        }
      }
    }
    do { draft.translation = try draft.finished() } catch { throw Self.refusal(400, error.reason) }
    draft.translation["url"] = try url(of: address.path)
    if let mark = draft.words["mark"] { draft.translation["watermark"] = try url(of: mark) }
    return draft.translation
  }

  /// Returns a parameter without the base64 that `64` after its name announces.
  private static func decoded(
    _ name: String, _ value: String
  ) throws(DoorAnswer) -> (String, String) {
    let plain = String(name.dropLast(2))
    guard name.hasSuffix("64"), ImgixDraft.options.has(plain) else { return (name, value) }
    guard let bytes = Base64URL.decode(value), let text = String(validating: bytes, as: UTF8.self)
    else { throw refusal(400, "\(name): the value is not base64url") }
    return (plain, text)
  }

  /// Returns whether a key signed an address: `s` is the last parameter, and not among the signed.
  private func isSigned(_ address: DoorAddress) -> Bool {
    let query = address.query[...]
    let end = query.utf8.lastIndex(of: UInt8(ascii: "&"))
    let item = end.map { query[query.utf8.index(after: $0)...] } ?? query
    guard item.hasPrefix("s=") else { return false }
    let message = address.path + (end.map { "?" + query[..<$0] } ?? "")
    let given = Array(item.utf8.dropFirst(2))
    // Every key is tried, so that the time does not depend on which is right.
    return keys.count { HMAC.isEqual(Array(HMAC.md5Hex(of: $0 + message.utf8).utf8), given) } > 0
  }

  private func url(of path: String) throws(DoorAnswer) -> String {
    let plain = path.drop { $0 == "/" }.percentDecoded
    return try sources.url(of: SourceRules.isWeb(plain) ? plain : path) { fault in
      switch fault {
      case .invalid(let reason): Self.refusal(400, reason)
      case .forbidden(let reason): Self.refusal(403, reason)
      }
    }
  }

  /// Returns the status of imgix's public table, as text.
  public func answer(to error: ImageError) -> DoorAnswer {
    let status =
      switch error.cause {
      case .expiredSignature, .sourceUnreachable, .sourceTLS, .forbiddenSource, .tooManyRedirects:
        404
      case .sourceError(400...499, _, _): 404
      case .tooManyPixels, .tooManyFrames: 413
      case .undecodable: 421
      case .unsupportedFormat, .unsupportedKind: 422
      default: error.status
      }
    return Self.refusal(status, error.message)
  }

  private static func refusal(_ status: Int, _ reason: String) -> DoorAnswer {
    DoorAnswer(status: status, body: reason, reason: reason)
  }
}
