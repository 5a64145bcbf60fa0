// SourceInfo: the JSON of /info, as a client reads it.

import FoundationEssentials

/// A source as /info describes it; members as in docs/http-api.md.
public struct SourceInfo: Decodable {
  /// How its pixels are stored.
  public struct Colour: Decodable {
    /// `rgb`, `grey`, `cmyk`, `lab`, `xyz` or `other`.
    public let space: String
    /// Bits of a channel.
    public let bits: Int
    /// What its profile calls itself.
    public let profile: String?
  }

  /// What to show until it is there.
  public struct Placeholder: Decodable {
    /// `blurhash`, `thumbhash`, `color` or `lqip`.
    public let kind: String
    /// The hash, `#rrggbb`, or a `data:` URI.
    public let value: String
  }

  /// As `format=` names it.
  public let format: String
  /// Upright, in pixels.
  public let width: Int
  /// Upright, in pixels.
  public let height: Int
  /// The EXIF tag, 1–8.
  public let orientation: Int
  /// 1 for a still.
  public let frames: Int
  /// Of a TIFF or HEIC with several.
  public let pages: Int?
  /// Runs of an animation; 0 for ever.
  public let loop: Int?
  /// Of one run of an animation.
  public let duration_ms: Int?
  /// Whether pixels have one.
  public let alpha: Bool
  /// How its pixels are stored.
  public let colour: Colour
  /// Of the file.
  public let bytes: Int
  /// Pixels per point: 1, 2 or 3.
  public let density: Int
  /// Where one was asked for.
  public let placeholder: Placeholder?

  /// Reads an answer's body.
  public init(json: [UInt8]) throws {
    self = try JSONDecoder().decode(SourceInfo.self, from: Data(json))
  }
}
