// PlainReduction: recognizes transforms that cost little more than decoding their source.

extension Transform {
  /// Whether the transform only shrinks the source, so decoding dominates its cost. An allow-list,
  /// because an unlisted parameter may be expensive.
  public var isPlainReduction: Bool {
    var plain = Transform()
    plain.scale = scale
    plain.width = width
    plain.height = height
    plain.fit = fit
    plain.accepted = accepted
    // The encoders of these formats are slower than most decoders.
    let mayBeSlow = accepted.contains(.avif) || accepted.contains(.jxl)
    return self == plain && !mayBeSlow
  }
}
