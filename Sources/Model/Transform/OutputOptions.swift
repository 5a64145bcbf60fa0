// OutputOptions: the format of a result and how it is encoded.

/// The format of a result and how it is encoded; at first as for a request that names nothing.
public struct OutputOptions: Hashable, Sendable {
  /// The output format. `nil` selects the first of `accepted` that can represent the image,
  /// otherwise PNG for alpha, GIF for animation, and JPEG.
  public var format: ImageFormat?
  /// Whether the format is the source's, where it can be written and can hold the result; see
  /// `ImageFormat.kept`. Ignored if `format` is set.
  public var keepsFormat = false
  /// The formats that the client accepts besides JPEG, PNG and GIF, the preferred first. Ignored if
  /// `format` is set.
  public var accepted: [ImageFormat] = []
  /// Lossy quality, 1–100; `nil`: that of `qualities`.
  public var quality: Int?
  /// Lossy quality by format where `quality` does not say: the operator's choice.
  public var qualities = FormatQualities()
  /// Most bytes of the result: quality, then size give way (SDWebImage's encodeMaxFileSize).
  public var maxBytes: Int?
  /// The colour to flatten alpha onto if the output has none, and the padding of `contain`.
  public var background: Color = .white
  /// Whether alpha is flattened onto the background even where the output has one.
  public var flattens = false
  /// Whether an animation stays animated.
  public var isAnimated = true
  /// Whether to strip Exif, XMP and IPTC.
  public var stripsMetadata = true
  /// The colours of the result.
  public var profile = ColourProfile.srgb
  /// Whether the output can be shown while it arrives: interlaced, or the source's own bytes if
  /// suitable (SDWebImage's ProgressiveDownload).
  public var isProgressive = false

  /// Whether WebP, AVIF and JPEG XL keep every pixel as it is.
  public var isLossless = false
  /// How JPEG and AVIF store colour; `nil`: as the quality says.
  public var chroma: ChromaSampling?
  /// The most colours of a PNG or GIF, rounded down to what a palette of 1, 2, 4 or 8 bits holds.
  public var colours: Int?
  /// The kinds of sources that are sent as they are.
  public var passed: PassedKinds = []

  /// The colour of the corners beside an image that is turned by an angle: no colour without a
  /// background.
  public var cornerColor: Color {
    background == .white ? Color(red: 255, green: 255, blue: 255, alpha: 0) : background
  }

  /// The range of `quality`.
  public static let qualityRange = 1...100

  /// Returns whether a result with these options looks the same from a variant with the options
  /// `larger` as from the source. An allow-list: an option that is not copied here must be equal.
  ///
  /// A variant with an explicit format may have lost alpha or animation, so the formats must be
  /// equal. A variant cannot bring the source's metadata.
  public func isDerivable(from larger: OutputOptions) -> Bool {
    guard stripsMetadata, larger.format == nil || larger.format == format else { return false }
    var derived = larger
    derived.format = format
    derived.accepted = accepted
    derived.quality = quality
    derived.qualities = qualities
    derived.maxBytes = maxBytes
    derived.isProgressive = isProgressive
    derived.stripsMetadata = stripsMetadata
    return self == derived
  }
}

/// The colours of a result.
public enum ColourProfile: String, CaseIterable, Sendable {
  /// Those of sRGB, without a profile.
  case srgb
  /// Those of the source's ICC profile, which stays, where the format can hold it.
  case keep
}

/// How densely colour is stored beside lightness.
public enum ChromaSampling: String, CaseIterable, Sendable {
  /// A sample for four pixels.
  case quarter = "420"
  /// A sample for each pixel.
  case full = "444"
}

/// Kinds of sources.
public struct PassedKinds: OptionSet, Hashable, Sendable {
  /// The bits.
  public let rawValue: UInt8

  /// Creates a set from its bits.
  public init(rawValue: UInt8) { self.rawValue = rawValue }

  /// Animations.
  public static let animated = PassedKinds(rawValue: 1)
  /// SVGs.
  public static let vector = PassedKinds(rawValue: 2)
  /// All sources.
  public static let all = PassedKinds(rawValue: 4)

  fileprivate static let names: [(name: String, kind: PassedKinds)] = [
    ("animated", .animated), ("vector", .vector), ("all", .all),
  ]
}

extension ParameterKind where Value == PassedKinds {
  /// Names with commas between them, in one order.
  static var kinds: ParameterKind {
    ParameterKind(
      allowed: AllowedValues(
        text: "animated, vector or all, or several in this order with commas between them",
        names: PassedKinds.names.map(\.name)),
      read: { given in
        var kinds = PassedKinds()
        for part in given.text.split(separator: ",", omittingEmptySubsequences: false) {
          guard let kind = PassedKinds.names.first(where: { $0.name == part })?.kind,
            kind.rawValue > kinds.rawValue
          else { return nil }
          kinds.insert(kind)
        }
        return kinds
      },
      text: { kinds in
        kinds.isEmpty
          ? nil
          : PassedKinds.names.filter { kinds.contains($0.kind) }.map(\.name).joined(separator: ",")
      })
  }
}

extension OutputOptions {
  /// The parameters of the output, and what the server adds to them.
  static let parameters: [TransformParameter] = choice + qualities + encoding

  private static let choice: [TransformParameter] =
    [
      format,
      TransformParameter(
        "placeholder", .names(PlaceholderKind.allCases), in: .output, isPlain: true,
        "The kind, together with format=placeholder; lqip without it"
      ) { $1(&$0.placeholder) },
      description,
      // The default of the contract is no other request.
      TransformParameter(
        "quality", .whole(qualityRange), in: .output,
        "Lossy quality; each format has its default",
        where: {
          $0.transform.output.quality != $0.transform.output.format?.traits.defaultQuality
        }
      ) { $1(&$0.transform.output.quality) },
    ]

  private static let encoding: [TransformParameter] =
    [
      TransformParameter(
        "maxbytes",
        .whole(1...Int.max, unit: "bytes", saying: "a whole number of bytes, at least 1"),
        in: .output, "The most bytes of the result; quality is reduced first, then the size"
      ) { $1(&$0.transform.output.maxBytes) },
      TransformParameter(
        "lossless", .flag, in: .output, "WebP, AVIF and JPEG XL that keep every pixel"
      ) { $1(&$0.transform.output.isLossless) },
      TransformParameter(
        "chroma", .names(ChromaSampling.allCases), in: .output,
        "420: half the colour samples each way; 444: all of them"
      ) { $1(&$0.transform.output.chroma) },
      TransformParameter(
        "colours", .whole(2...256, unit: "colours"), in: .output,
        "The most colours of a PNG or GIF"
      ) { $1(&$0.transform.output.colours) },
      TransformParameter(
        "pass", .kinds, in: .output,
        "What is sent as it is: animated, vector or all sources"
      ) { $1(&$0.transform.output.passed) },
      TransformParameter(
        "strip", .flag, in: .output, "Drop metadata"
      ) { $1(&$0.transform.output.stripsMetadata) },
      TransformParameter(
        "profile", .names(ColourProfile.allCases), in: .output,
        "keep: the source's ICC profile and colours"
      ) { $1(&$0.transform.output.profile) },
      TransformParameter(
        "progressive", .flag, in: .output,
        "Interlaced, or streamed while the source arrives"
      ) { $1(&$0.transform.output.isProgressive) },
      TransformParameter(
        "animated", .flag, in: .source,
        "Keep all frames of an animation"
      ) { $1(&$0.transform.output.isAnimated) },
      TransformParameter(
        "background", .color, in: .effects,
        "Behind alpha if the output has none, and what pads"
      ) { $1(&$0.transform.output.background) },
      TransformParameter(
        "flatten", .flag, in: .effects,
        "Put the background behind alpha in every format"
      ) { $1(&$0.transform.output.flattens) },
      accepted,
    ]

  private static let format = TransformParameter(
    "format", .names(["auto", "source"] + ImageFormat.outputs.map(\.rawValue) + ["placeholder"]),
    in: .output, isPlain: true, standard: "auto",
    "auto: what the client accepts, else what the image needs; source: that of the source",
    read: { given, draft in
      let name = given.text == "jpg" ? "jpeg" : given.text
      draft.transform.output.format = ImageFormat.outputs.first { $0.rawValue == name }
      draft.isPlaceholder = name == "placeholder"
      draft.transform.output.keepsFormat = name == "source"
      return draft.transform.output.format != nil
        || ["auto", "source", "placeholder"].contains(name)
    },
    text: {
      let output = $0.transform.output
      return $0.isPlaceholder
        ? "placeholder" : output.format?.rawValue ?? (output.keepsFormat ? "source" : nil)
    })

  /// The quality of each format, for results without `quality`: the operator's, or the client's. A
  /// text has those that differ from the contract's, as far as the result may depend on them.
  private static let qualities = ImageFormat.lossy.map { format in
    TransformParameter(
      "q_\(format.rawValue)", .whole(qualityRange), in: .output,
      "Quality if the result is \(format.traits.title)",
      read: { given, draft in
        guard let quality = given.whole(in: qualityRange) else { return false }
        draft.transform.output.qualities[format] = quality
        return true
      },
      text: { draft in
        let output = draft.transform.output
        let quality = output.qualities[format]
        guard output.quality == nil, draft.product == .image, output.mayBecome(format),
          quality != format.traits.defaultQuality
        else { return nil }
        return quality.map { "\($0)" }
      })
  }

  /// Whether a result may have a format.
  private func mayBecome(_ other: ImageFormat) -> Bool {
    if let format { return format == other }
    return keepsFormat || other == .jpeg || accepted.contains(other)
  }

  /// Whether the source is described. Clients have a path for it.
  private static let description = TransformParameter(
    "info", .flag, in: nil,
    read: { given, draft in
      draft.isDescription = given.text == "1"
      return draft.isDescription
    },
    text: { $0.isDescription ? "1" : nil })

  /// The formats that the client accepts.
  private static let accepted = TransformParameter(
    "auto", AllowedValues(text: "formats"), in: nil,
    read: { given, draft in
      let formats = given.text.split(separator: ",", omittingEmptySubsequences: false).map { name in
        ImageFormat.negotiable.first { $0.rawValue == name }
      }
      draft.transform.output.accepted = formats.compactMap(\.self)
      return !formats.contains(nil) && Set(formats).count == formats.count
    },
    text: { draft in
      let output = draft.transform.output
      guard output.format == nil, !output.accepted.isEmpty else { return nil }
      return output.accepted.map(\.rawValue).joined(separator: ",")
    })
}
