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
    return self == plain && !mayEncodeSlowly
  }

  /// Whether nothing that the transform asks for is known to be expensive: no effects, no watermark, no limit of bytes and
  /// no slow encoder. One such variant may be large; if several take too long, their source is expensive.
  public var isUndemanding: Bool {
    isPlainImage && output.maxBytes == nil && output.format != .gif && !mayEncodeSlowly
  }

  /// Whether the encoder may be slower than most decoders.
  private var mayEncodeSlowly: Bool {
    [.avif, .jxl].contains { output.format == $0 || output.accepted.contains($0) }
  }
}
