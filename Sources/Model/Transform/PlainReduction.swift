// PlainReduction: recognizes transforms that cost little more than decoding their source.

extension Transform {
  /// Whether the transform only shrinks the source, so decoding dominates its cost. An allow-list,
  /// because an unlisted parameter may be expensive.
  public var isPlainReduction: Bool {
    var plain = Transform()
    plain.sizing.scale = sizing.scale
    plain.sizing.width = sizing.width
    plain.sizing.height = sizing.height
    plain.sizing.fit = sizing.fit
    plain.output.accepted = output.accepted
    // The encoders of these formats are slower than most decoders.
    let mayBeSlow = output.accepted.contains(.avif) || output.accepted.contains(.jxl)
    return self == plain && !mayBeSlow
  }
}
