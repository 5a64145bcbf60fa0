// ThumborDoor: the doors of thumbor and imagor, whose addresses have one form.

import Core

/// The addresses of thumbor 7, `/HASH|unsafe/PART/…/filters:…/IMAGE`, as 7.8.0 answers them without
/// detectors and optimizers.
public struct ThumborDoor: Door {
  private let front: ThumborFront

  /// Creates the door.
  public init(_ options: DoorOptions) { front = ThumborFront(.thumbor, options) }

  /// thumbor.
  public var name: String { front.dialect.rawValue }

  /// What thumbor's options become.
  public static var rows: [DoorOptionRow] { ThumborDialect.thumbor.rows }

  /// Claims every address, because thumbor answers 400 to all that it does not know.
  public func claims(_ address: DoorAddress) -> Bool { address.path != "/" }

  /// Translates an address.
  public func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    try front.translate(address)
  }

  /// Returns what thumbor answers to a failure.
  public func answer(to error: ImageError) -> DoorAnswer { front.dialect.answer(to: error) }
}

/// The addresses of imagor, which are thumbor's with more parts and filters.
public struct ImagorDoor: Door {
  private let front: ThumborFront

  /// Creates the door.
  public init(_ options: DoorOptions) { front = ThumborFront(.imagor, options) }

  /// imagor.
  public var name: String { front.dialect.rawValue }

  /// What imagor's options become.
  public static var rows: [DoorOptionRow] { ThumborDialect.imagor.rows }

  /// Claims every address, because imagor answers 403 to all that it does not know.
  public func claims(_ address: DoorAddress) -> Bool { address.path != "/" }

  /// Translates an address.
  public func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    try front.translate(address)
  }

  /// Returns what imagor answers to a failure.
  public func answer(to error: ImageError) -> DoorAnswer { front.dialect.answer(to: error) }
}

/// Reads addresses in one of the two dialects.
struct ThumborFront: Sendable {
  let dialect: ThumborDialect
  private let sources: ThumborSources
  private let signature: ThumborSignature
  /// Whether `/unsafe/` is served.
  private let servesUnsafe: Bool

  init(_ dialect: ThumborDialect, _ options: DoorOptions) {
    self.dialect = dialect
    sources = ThumborSources(dialect, options)
    signature = ThumborSignature(dialect, options)
    servesUnsafe = options.keys.isEmpty || options.allowsUnsigned
  }

  func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    let path = address.path[...]
    if path == "/healthcheck" { throw dialect.health }
    guard let (first, rest) = path.dropFirst().cutAtSlash else {
      throw dialect.refusal("the address has no image")
    }
    var draft = ThumborDraft(dialect, sources)
    if first == "unsafe" {
      guard servesUnsafe else { throw dialect.mismatch("unsafe: only signed addresses are served") }
    } else if dialect == .imagor && first == "params" {
      throw dialect.refusal("params: the description of an address is not served")
    } else {
      guard signature.verify(first, of: rest) else {
        throw dialect.mismatch("the signature belongs to another address or another key")
      }
      draft.translation.isSigned = true
    }
    return try draft.translated(rest)
  }
}

extension Substring {
  /// What stands before and after the first slash; `nil` without one.
  var cutAtSlash: (head: Substring, tail: Substring)? {
    // By bytes: a slash and a combining mark after it are one `Character`.
    guard let slash = utf8.firstIndex(of: UInt8(ascii: "/")) else { return nil }
    return (self[..<slash], self[utf8.index(after: slash)...])
  }
}
