// RequestParameters: the parameters of a request that change no image: its source, loading, failure
// and signature.

import Core

extension ImageParameter {
  /// What is no part of the transform. `ImageQuery` expands presets, and `RequestRules.grant`
  /// verifies signatures before any value is parsed.
  static let requestTable: [ImageParameter] = [
    ImageParameter(
      name: "url", allowed: AllowedValues(text: "an absolute http, https or local URL", form: .url),
      group: .source, help: "The image to load"
    ) {
      $1.url = $0
      return true
    },
    ImageParameter(
      name: "preset",
      allowed: { AllowedValues(text: $0.presetsAllowed, names: $0.presets.keys.sorted()) },
      group: .source, help: "A named set of parameters from the configuration"
    ) {
      $1.rules.presets[$0] != nil
    },
    ImageParameter(
      name: "watermark",
      allowed: {
        AllowedValues(
          text: "one of the configured names, or local:///path if sources.local_root is set",
          names: $0.watermarks.keys.sorted(), form: $0.allowsLocalWatermarks ? .url : nil)
      },
      group: .watermark, help: "A second image on top: a configured name, or a local URL",
      shapesImage: true, access: .signed
    ) {
      $1.watermark = $1.rules.watermark($0)
      return $1.watermark != nil
    },
    ImageParameter(
      name: "refresh", allowed: .names(["1"], saying: "1, and not together with cache"),
      group: .loading, help: "Revalidate the stored source with its origin first",
      access: .option(.refresh)
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
      access: .option(.bypass, except: ["only"])
    ) {
      guard $1.options.cache == .normal, $0 == "only" || $0 == "bypass" else { return false }
      $1.options.cache = $0 == "only" ? .only : .bypass
      return true
    },
    ImageParameter(
      name: "store", allowed: .names(["all", "memory", "disk", "none"]),
      group: .loading, help: "The tiers that store the result",
      standard: "all", access: .option(.store, except: ["all"])
    ) { value, draft in
      let tiers: [String: StoreTiers] = ["all": .all, "memory": .memory, "disk": .disk, "none": []]
      guard let store = tiers[value] else { return false }
      draft.options.store = store
      return true
    },
    ImageParameter(
      name: "retry", allowed: .names(["1"], saying: "1"),
      group: .loading, help: "Try again although the URL failed before", access: .option(.retry)
    ) {
      $1.options.retriesFailed = $0 == "1"
      return $0 == "1"
    },
    ImageParameter(
      name: "priority", allowed: .names(LoadPriority.allCases.map(\.rawValue)),
      group: .loading, help: "The place in the queues",
      standard: LoadPriority.normal.rawValue,
      access: .option(.priority, except: ["low", "normal"])
    ) {
      guard let priority = LoadPriority(rawValue: $0) else { return false }
      $1.options.priority = priority
      return true
    },
    ImageParameter(
      name: "detach", allowed: .names(["1"], saying: "1"),
      group: .loading, help: "Complete and store the image even if the client disconnects",
      access: .option(.detach)
    ) {
      $1.options.isDetached = $0 == "1"
      return $0 == "1"
    },
    ImageParameter(
      name: "fallback",
      allowed: {
        AllowedValues(text: $0.fallbacksAllowed, names: $0.fallbacks.keys.sorted() + ["none"])
      },
      group: .loading, help: "The image to send if this one cannot be had"
    ) {
      $1.fallback =
        $0 == "none" ? FailureAnswer.error : $1.rules.fallbacks[$0].map { .fallback($0) }
      return $1.fallback != nil
    },
    ImageParameter(
      name: "onerror", allowed: .names(["redirect"], saying: "redirect"),
      group: .loading, help: "Send the client to the source if the image cannot be had",
      access: .vouched
    ) {
      $1.redirectsFailures = $0 == "redirect"
      return $1.redirectsFailures
    },
    ImageParameter(
      name: "download", allowed: .flag,
      group: .output, help: "Have browsers save the image in place of showing it", standard: "0"
    ) {
      $1.options.presentation.isAttachment = $0 == "1"
      return $0 == "0" || $0 == "1"
    },
    ImageParameter(
      name: "filename",
      allowed: AllowedValues(
        text: "1 to \(Presentation.longestStem) characters without a slash", form: .text),
      group: .output, help: "The name to save it under; the extension follows from the format"
    ) {
      $1.options.presentation.stem = $0
      return (1...Presentation.longestStem).contains($0.unicodeScalars.count)
        && !$0.utf8.contains { $0 == 0x2f || $0 == 0x5c || $0 < 0x20 || $0 == 0x7f }
    },
    ImageParameter(
      name: "maxage", allowed: .whole(Presentation.ages, unit: "seconds"),
      group: .loading, help: "The longest time in caches, if the source's is longer"
    ) {
      $1.options.presentation.maximumAge = ParameterText($0).whole(in: Presentation.ages)
      return $1.options.presentation.maximumAge != nil
    },
    ImageParameter(
      name: "exp", allowed: expiryTimes,
      group: .signature, help: "The time from which on the URL is refused"
    ) { value, _ in ParameterText(value).whole(in: expiryRange) != nil },
    ImageParameter(
      name: "sig", allowed: AllowedValues(text: "id.signature", form: .text),
      group: .signature, help: "HMAC-SHA256 of path and query: id.signature"
    ) { _, _ in true },
  ]

  /// The times that `exp` can name: up to the end of the year 9999.
  static let expiryRange = 1...253_402_300_799
  /// The same for messages.
  static let expiryTimes = AllowedValues.whole(
    expiryRange, unit: "Unix seconds",
    saying: AllowedValues.text(expiryRange) + ", in Unix seconds")
}

extension ImageParameter.Draft {
  /// Returns the watermark with its placement, or `nil` if none is requested.
  ///
  /// - Throws: `missingParameter` if a placement is set without a watermark.
  func wholeWatermark() throws(ImageError) -> Watermark? {
    guard let watermark else {
      guard !placesWatermark else { throw .missingParameter("watermark") }
      return nil
    }
    return Watermark(
      source: watermark, placement: image.placement, keyURL: rules.keyFilter.keyURL(of: watermark))
  }

  /// Returns what the client gets if the image cannot be had.
  ///
  /// - Throws: `invalidParameter` if both a fallback image and a redirect are requested.
  func failureAnswer() throws(ImageError) -> FailureAnswer {
    guard redirectsFailures else { return fallback ?? rules.defaultFallback }
    if case .fallback? = fallback {
      throw .invalidParameter(
        name: "onerror", value: "redirect", allowed: "not together with fallback")
    }
    return .redirect
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

  /// The allowed values of `fallback` for error messages; only their number if there are more than
  /// 20.
  fileprivate var fallbacksAllowed: String {
    switch fallbacks.count {
    case 0: "none; no fallbacks are configured"
    case ...20: "one of " + (fallbacks.keys.sorted() + ["none"]).joined(separator: ", ")
    default: "none, or one of the \(fallbacks.count) fallbacks of the configuration"
    }
  }
}
