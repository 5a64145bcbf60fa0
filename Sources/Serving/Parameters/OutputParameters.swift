// OutputParameters: the parameters of the format, and of how an image is loaded and stored.

import Model

extension ImageParameter {
  /// The parameters of group `output`.
  static let outputTable: [ImageParameter] = [
    ImageParameter(
      name: "format",
      allowed: .names(["auto"] + ImageFormat.outputs.map(\.rawValue) + ["placeholder"]),
      group: .output, help: "auto: what the client accepts, else what the image needs",
      standard: "auto", access: .plain
    ) { value, draft in
      let name = value == "jpg" ? "jpeg" : value
      draft.transform.output.format = ImageFormat.outputs.first { $0.rawValue == name }
      draft.isPlaceholder = value == "placeholder"
      return draft.transform.output.format != nil || draft.isPlaceholder || value == "auto"
    },
    ImageParameter(
      name: "placeholder", allowed: .names(PlaceholderKind.allCases.map(\.rawValue)),
      group: .output, help: "The kind, together with format=placeholder; lqip without it",
      access: .plain
    ) {
      $1.placeholder = PlaceholderKind(rawValue: $0)
      return $1.placeholder != nil
    },
    ImageParameter(
      name: "quality", allowed: .whole(OutputOptions.qualityRange),
      group: .output, help: "Lossy quality; each format has its default"
    ) {
      $1.transform.output.quality = whole($0, in: OutputOptions.qualityRange)
      return $1.transform.output.quality != nil
    },
    ImageParameter(
      name: "maxbytes",
      allowed: .whole(
        1...Int.max, unit: "bytes", saying: "a whole number of bytes, at least 1"),
      group: .output, help: "The most bytes of the result; quality is reduced first, then the size"
    ) {
      $1.transform.output.maxBytes = whole($0, in: 1...Int.max)
      return $1.transform.output.maxBytes != nil
    },
    ImageParameter(
      name: "strip", allowed: .flag,
      group: .output, help: "Drop metadata",
      standard: "1"
    ) {
      choose(flag($0), for: &$1.transform.output.stripsMetadata)
    },
    ImageParameter(
      name: "progressive", allowed: .flag,
      group: .output, help: "Interlaced, or streamed while the source arrives",
      standard: "0"
    ) {
      choose(flag($0), for: &$1.transform.output.isProgressive)
    },
  ]

  /// The parameters of group `loading`.
  static let loadingTable: [ImageParameter] = [
    ImageParameter(
      name: "refresh", allowed: .names(["1"], saying: "1, and not together with cache"),
      group: .loading, help: "Revalidate the stored source with its origin first",
      shapesImage: false, access: .option(.refresh)
    ) {
      guard $0 == "1", $1.options.cache == .normal else { return false }
      $1.options.cache = .refresh
      return true
    },
    ImageParameter(
      name: "cache",
      allowed: .names(
        ["only", "bypass"], saying: "only or bypass, and not together with refresh"),
      group: .loading, help: "only: from the cache, else 504. bypass: use no stored image",
      shapesImage: false, access: .option(.bypass, except: ["only"])
    ) {
      guard $1.options.cache == .normal, $0 == "only" || $0 == "bypass" else { return false }
      $1.options.cache = $0 == "only" ? .only : .bypass
      return true
    },
    ImageParameter(
      name: "store", allowed: .names(["all", "memory", "disk", "none"]),
      group: .loading, help: "The tiers that store the result",
      standard: "all", shapesImage: false, access: .option(.store, except: ["all"])
    ) {
      choose(tiers($0), for: &$1.options.store)
    },
    ImageParameter(
      name: "retry", allowed: .names(["1"], saying: "1"),
      group: .loading, help: "Try again although the URL failed before",
      shapesImage: false, access: .option(.retry)
    ) {
      $1.options.retriesFailed = $0 == "1"
      return $0 == "1"
    },
    ImageParameter(
      name: "priority", allowed: .names(LoadPriority.allCases.map(\.rawValue)),
      group: .loading, help: "The place in the queues",
      standard: LoadPriority.normal.rawValue, shapesImage: false,
      access: .option(.priority, except: ["low", "normal"])
    ) {
      choose(LoadPriority(rawValue: $0), for: &$1.options.priority)
    },
    ImageParameter(
      name: "detach", allowed: .names(["1"], saying: "1"),
      group: .loading, help: "Complete and store the image even if the client disconnects",
      shapesImage: false, access: .option(.detach)
    ) {
      $1.options.isDetached = $0 == "1"
      return $0 == "1"
    },
  ]
}
