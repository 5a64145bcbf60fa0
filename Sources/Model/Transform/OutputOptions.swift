// OutputOptions: the format of a result and how it is encoded.

/// The format of a result and how it is encoded.
public struct OutputOptions: Hashable, Sendable {
  /// The output format. `nil` selects the first of `accepted` that can represent the image,
  /// otherwise PNG for alpha, GIF for animation, and JPEG.
  public var format: ImageFormat?
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
  /// Whether an animation stays animated.
  public var isAnimated = true
  /// Whether to strip Exif, XMP and IPTC.
  public var stripsMetadata = true
  /// Whether the output can be shown while it arrives: interlaced, or the source's own bytes if
  /// suitable (SDWebImage's ProgressiveDownload).
  public var isProgressive = false

  /// The range of `quality`.
  public static let qualityRange = 1...100

  /// Creates the options of a request that names none.
  public init() {}

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

extension OutputOptions {
  /// The parameters of the output, and what the server adds to them.
  static let parameters = [
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
    qualities,
    TransformParameter(
      "maxbytes", .whole(1...Int.max, unit: "bytes", saying: "a whole number of bytes, at least 1"),
      in: .output, "The most bytes of the result; quality is reduced first, then the size"
    ) { $1(&$0.transform.output.maxBytes) },
    TransformParameter(
      "strip", .flag, in: .output, "Drop metadata"
    ) { $1(&$0.transform.output.stripsMetadata) },
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
      "Behind alpha if the output has none, and the padding of contain"
    ) { $1(&$0.transform.output.background) },
    accepted,
  ]

  private static let format = TransformParameter(
    "format", .names(["auto"] + ImageFormat.outputs.map(\.rawValue) + ["placeholder"]),
    in: .output, isPlain: true, standard: "auto",
    "auto: what the client accepts, else what the image needs",
    read: { given, draft in
      let name = given.text == "jpg" ? "jpeg" : given.text
      draft.transform.output.format = ImageFormat.outputs.first { $0.rawValue == name }
      draft.isPlaceholder = name == "placeholder"
      return draft.transform.output.format != nil || draft.isPlaceholder || name == "auto"
    },
    text: { $0.isPlaceholder ? "placeholder" : $0.transform.output.format?.rawValue })

  /// Whether the source is described. Clients have a path for it.
  private static let description = TransformParameter(
    "info", .flag, in: nil,
    read: { given, draft in
      draft.isDescription = given.text == "1"
      return draft.isDescription
    },
    text: { $0.isDescription ? "1" : nil })

  /// The operator's qualities that differ from the contract's, as far as the result may depend on
  /// them: `jpeg:70,webp:60`.
  private static let qualities = TransformParameter(
    "qualities", AllowedValues(text: "format:quality"), in: nil,
    read: { given, draft in
      for part in given.text.split(separator: ",", omittingEmptySubsequences: false) {
        let pair = part.split(separator: ":", maxSplits: 1).map(String.init)
        guard pair.count == 2, let format = ImageFormat(rawValue: pair[0]),
          draft.transform.output.qualities[format] != nil,
          let quality = ParameterText(pair[1]).whole(in: qualityRange)
        else { return false }
        draft.transform.output.qualities[format] = quality
      }
      return true
    },
    text: { draft in
      let output = draft.transform.output
      guard output.quality == nil, output.qualities != FormatQualities(), draft.product == .image
      else { return nil }
      return output.qualities.text(of: output.format.map { [$0] } ?? output.accepted + [.jpeg])
    })

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
