// HintNeeds: the request fields beside Accept on which the response to a target depends.

import Model

/// The hints that a target follows. Depends on the target and the configuration alone.
///
/// Not an `OptionSet`: each hit compares it, and unspecialized standard library code allocates.
struct HintNeeds: Hashable, Sendable {
  /// Whether `scale` is `auto`.
  var density = false
  /// Whether `w` is `auto`.
  var width = false
  /// Whether `Save-Data` lowers the quality.
  var savesData = false

  /// Whether no hint counts.
  var isEmpty: Bool { !density && !width && !savesData }

  /// Whether a parameter is `auto`.
  var hasAuto: Bool { density || width }

  /// A number from 0 to 7, different for each value.
  var number: UInt8 { (density ? 1 : 0) | (width ? 2 : 0) | (savesData ? 4 : 0) }

  /// The names of the fields, for `Vary`. The old name counts where the new one is absent, so both
  /// matter.
  var fields: [String] {
    (density ? ["Sec-CH-DPR", "DPR"] : []) + (width ? ["Sec-CH-Width", "Width"] : [])
      + (savesData ? ["Save-Data"] : [])
  }

  /// Makes the target follow a hint. Returns `true`.
  mutating func follow(_ hint: WritableKeyPath<HintNeeds, Bool>) -> Bool {
    self[keyPath: hint] = true
    return true
  }
}

extension RequestRules {
  /// Whether `Save-Data` lowers the quality of a transform: its result may be lossy, and the
  /// request neither names a quality nor a number of bytes.
  func lowersQuality(of transform: Transform) -> Bool {
    let output = transform.output
    let isLossy = output.format.map { output.qualities[$0] != nil } ?? true
    return savingQualities != nil && transform.product == .image && isLossy
      && output.quality == nil && output.maxBytes == nil
  }

  /// Returns the request for a client with these hints. Call before `forwarding`.
  func request(_ request: ImageRequest, for hints: ClientHints) -> ImageRequest {
    guard !hints.isEmpty else { return request }
    return request.changing {
      if let scale = hints.scale { $0.sizing.scale = scale }
      if let width = hints.width { $0.sizing.width = width }
      if hints.savesData, let savingQualities { $0.output.qualities = savingQualities }
    }
  }
}
