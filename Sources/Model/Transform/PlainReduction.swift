// PlainReduction: transforms whose cost is their source's.

extension Transform {
  /// Whether it asks for little but the source, smaller: what making it takes is what decoding takes. An allow-list, since
  /// what is not known may cost anything.
  public var isPlainReduction: Bool {
    var plain = Transform()
    plain.scale = scale
    plain.width = width
    plain.height = height
    plain.fit = fit
    plain.accepted = accepted
    // Their encoders take longer than most decoders.
    let mayBeSlow = accepted.contains(.avif) || accepted.contains(.jxl)
    return self == plain && !mayBeSlow
  }
}
