// Transform+Parameters: a transform's parameters without their groups, for short tests.

import Core

extension Transform {
  /// `sizing.scale`.
  public var scale: Double? {
    get { sizing.scale }
    set { sizing.scale = newValue }
  }
  /// `sizing.width`.
  public var width: Int? {
    get { sizing.width }
    set { sizing.width = newValue }
  }
  /// `sizing.height`.
  public var height: Int? {
    get { sizing.height }
    set { sizing.height = newValue }
  }
  /// `sizing.fit`.
  public var fit: Fit {
    get { sizing.fit }
    set { sizing.fit = newValue }
  }
  /// `sizing.position`.
  public var position: Position {
    get { sizing.position }
    set { sizing.position = newValue }
  }
  /// `sizing.focalPoint`.
  public var focalPoint: FocalPoint? {
    get { sizing.focalPoint }
    set { sizing.focalPoint = newValue }
  }
  /// `sizing.enlarge`.
  public var enlarge: Bool {
    get { sizing.enlarge }
    set { sizing.enlarge = newValue }
  }
  /// `sizing.limitBytes`.
  public var limitBytes: Int {
    get { sizing.limitBytes }
    set { sizing.limitBytes = newValue }
  }
}

extension Transform {
  /// `selection.frame`.
  public var frame: Int? {
    get { selection.frame }
    set { selection.frame = newValue }
  }
  /// `selection.rotation`.
  public var rotation: Rotation {
    get { selection.rotation }
    set { selection.rotation = newValue }
  }
  /// `selection.flip`.
  public var flip: Flip {
    get { selection.flip }
    set { selection.flip = newValue }
  }
  /// `selection.crop`.
  public var crop: PixelArea? {
    get { selection.crop?.area(in: PixelSize(width: 1 << 32, height: 1 << 32)) }
    set {
      selection.crop = newValue.map {
        Crop(
          width: .pixels($0.size.width), height: .pixels($0.size.height),
          at: .at(x: .pixels($0.x), y: .pixels($0.y)))
      }
    }
  }
  /// `selection.trim`.
  public var trim: Int? {
    get { selection.trim }
    set { selection.trim = newValue }
  }
}

extension Transform {
  /// `output.format`.
  public var format: ImageFormat? {
    get { output.format }
    set { output.format = newValue }
  }
  /// `output.accepted`.
  public var accepted: [ImageFormat] {
    get { output.accepted }
    set { output.accepted = newValue }
  }
  /// `output.quality`.
  public var quality: Int? {
    get { output.quality }
    set { output.quality = newValue }
  }
  /// `output.qualities`.
  public var qualities: FormatQualities {
    get { output.qualities }
    set { output.qualities = newValue }
  }
  /// `output.maxBytes`.
  public var maxBytes: Int? {
    get { output.maxBytes }
    set { output.maxBytes = newValue }
  }
  /// `output.background`.
  public var background: Color {
    get { output.background }
    set { output.background = newValue }
  }
  /// `output.isAnimated`.
  public var isAnimated: Bool {
    get { output.isAnimated }
    set { output.isAnimated = newValue }
  }
  /// `output.stripsMetadata`.
  public var stripsMetadata: Bool {
    get { output.stripsMetadata }
    set { output.stripsMetadata = newValue }
  }
  /// `output.isProgressive`.
  public var progressive: Bool {
    get { output.isProgressive }
    set { output.isProgressive = newValue }
  }
}
