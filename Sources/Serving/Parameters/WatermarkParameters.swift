// WatermarkParameters: the parameters that select a watermark and its placement.

import Model

extension ImageParameter {
  /// The parameters of watermarks.
  static let watermarkTable: [ImageParameter] = [
    ImageParameter(
      name: "watermark",
      allowed: {
        AllowedValues(
          text: "one of the configured names, or local:///path if sources.local_root is set",
          names: $0.watermarks.keys.sorted(), form: $0.allowsLocalWatermarks ? .url : nil)
      },
      group: .watermark, help: "A second image on top: a configured name, or a local URL"
    ) {
      $1.watermark = $1.rules.watermark($0)
      return $1.watermark != nil
    },
    ImageParameter(
      name: "watermark_position", allowed: .names(WatermarkPlacement.positions.map(\.rawValue)),
      group: .watermark, help: "Its place",
      standard: WatermarkPlacement().position.rawValue
    ) { value, draft in
      let position = WatermarkPlacement.positions.first { $0.rawValue == value }
      return draft.place { choose(position, for: &$0.position) }
    },
    ImageParameter(
      name: "watermark_scale", allowed: .share,
      group: .watermark, help: "Its width as a share of the width of the result"
    ) { value, draft in
      draft.place {
        $0.scale = share(value)
        return $0.scale != nil
      }
    },
    ImageParameter(
      name: "watermark_opacity", allowed: .share,
      group: .watermark, help: "Its strength",
      standard: "1"
    ) { value, draft in
      draft.place { choose(share(value), for: &$0.opacity) }
    },
    ImageParameter(
      name: "watermark_repeat", allowed: .flag,
      group: .watermark, help: "Tile the whole result",
      standard: "0"
    ) { value, draft in
      draft.place { choose(flag(value), for: &$0.repeats) }
    },
  ]

  private static func share(_ text: String) -> Double? {
    decimal(text, in: WatermarkPlacement.shareRange).flatMap { $0 > 0 ? $0 : nil }
  }
}

extension AllowedValues {
  /// A share of the whole.
  fileprivate static let share = decimal(
    above: WatermarkPlacement.shareRange, saying: "a number above 0, at most 1")
}

extension ImageParameter.Draft {
  /// Changes the watermark's placement. Returns whether the value is allowed.
  fileprivate mutating func place(_ change: (inout WatermarkPlacement) -> Bool) -> Bool {
    var placement = watermarkPlacement ?? WatermarkPlacement()
    defer { watermarkPlacement = placement }
    return change(&placement)
  }

  /// Returns the watermark with its placement, or `nil` if none is requested.
  ///
  /// - Throws: `missingParameter` if a placement is set without a watermark.
  func wholeWatermark() throws(ImageError) -> Watermark? {
    guard let watermark else {
      guard watermarkPlacement == nil else { throw .missingParameter("watermark") }
      return nil
    }
    return Watermark(
      source: watermark, placement: watermarkPlacement ?? WatermarkPlacement(),
      keyURL: rules.keyFilter.keyURL(of: watermark))
  }
}

extension RequestRules {
  /// Returns a watermark by its configured name or, if allowed, by its local URL. Other URLs are
  /// refused: with them a client could combine any two images of the web.
  fileprivate func watermark(_ text: String) -> SourceURL? {
    if let url = watermarks[text] { return url }
    guard allowsLocalWatermarks, let url = try? SourceURL(parsing: text), url.scheme == .local
    else { return nil }
    return url
  }
}
