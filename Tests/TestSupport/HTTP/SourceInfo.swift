// SourceInfo: the JSON of /info, decoded as a client does.

import FoundationEssentials

/// A source as /info describes it; the members are those of docs/http-api.md.
public struct SourceInfo: Decodable {
  /// The storage of the pixels.
  public struct Colour: Decodable {
    /// `rgb`, `grey`, `cmyk`, `lab`, `xyz` or `other`.
    public let space: String
    /// Bits per channel.
    public let bits: Int
    /// The description in the profile.
    public let profile: String?
  }

  /// The placeholder of the source.
  public struct Placeholder: Decodable {
    /// `blurhash`, `thumbhash`, `color` or `lqip`.
    public let kind: String
    /// The hash, `#rrggbb`, or a `data:` URI.
    public let value: String
  }

  /// The format, as `format=` names it.
  public let format: String
  /// The width of the upright image in pixels.
  public let width: Int
  /// The height of the upright image in pixels.
  public let height: Int
  /// The EXIF orientation tag, 1–8.
  public let orientation: Int
  /// The number of frames; 1 for a still.
  public let frames: Int
  /// The number of decoded frames, if an animation has more.
  public let frames_kept: Int?
  /// The number of pages of a TIFF or HEIC with several.
  public let pages: Int?
  /// The loop count of an animation; 0 means forever.
  public let loop: Int?
  /// The duration of one loop of an animation, in milliseconds.
  public let duration_ms: Int?
  /// Whether pixels have alpha.
  public let alpha: Bool
  /// The storage of the pixels.
  public let colour: Colour
  /// The size of the file in bytes.
  public let bytes: Int
  /// Pixels per point: 1, 2 or 3.
  public let density: Int
  /// The placeholder, if one was requested.
  public let placeholder: Placeholder?

  /// Decodes the body of a response.
  public init(json: [UInt8]) throws {
    self = try JSONDecoder().decode(SourceInfo.self, from: Data(json))
  }
}
