// TransformDraft: a transform as its parameters say it, read from text and written as text.

/// What parameters say of a transform. It becomes a transform once all are read.
public struct TransformDraft: Hashable, Sendable {
  /// The transform, without its product and its watermark.
  public var transform = Transform()
  /// The placement of the watermark.
  public var placement = WatermarkPlacement()
  /// Whether a description is requested.
  public var isDescription = false
  /// Whether a placeholder is requested in place of the image.
  var isPlaceholder = false
  /// The kind of placeholder.
  public var placeholder: PlaceholderKind?

  /// Creates a draft that asks for nothing.
  public init() {}

  /// Creates the draft of a whole transform.
  public init(_ transform: Transform) {
    self.transform = transform
    placement = transform.watermark?.placement ?? placement
    switch transform.product {
    case .image: break
    case .info(let kind): (isDescription, placeholder) = (true, kind)
    case .placeholder(let kind): (isPlaceholder, placeholder) = (true, kind)
    }
  }

  /// The product that is requested; `nil` for a kind of placeholder without a placeholder.
  public var product: Product? {
    if isDescription { return .info(placeholder) }
    if isPlaceholder { return .placeholder(placeholder ?? .lqip) }
    return placeholder == nil ? .image : nil
  }

  /// The one text of this draft: parameters in a fixed order, without defaults. What changes the
  /// bytes of the result is in it, and nothing else is.
  public var text: String {
    var text = ""
    // Rows get access to a draft that they could change, and change nothing.
    var draft = self
    for section in TransformParameter.sections where !section.isDefault(&draft) {
      for row in section.rows {
        guard let value = row.text(&draft) else { continue }
        if !text.isEmpty { text += "&" }
        text += row.name
        text += "="
        text += value
      }
    }
    return text
  }

  /// Reads a text that another process wrote. Returns `nil` if `text` is not the text of a draft.
  public init?(text: String) {
    self.init()
    for piece in text.split(separator: "&") {
      guard let end = piece.firstIndex(of: "="),
        let row = TransformParameter.table.first(where: { $0.name == piece[..<end] }),
        row.read(
          ParameterText(String(piece[end...].dropFirst()), isCanonical: true), &self)
      else { return nil }
    }
    guard let product else { return nil }
    transform.product = product
    let placement = placement
    self.init(transform)
    self.placement = placement
    guard self.text == text else { return nil }
  }
}

extension Transform {
  /// The canonical text, as it stands in cache keys. Transforms with the same text have the same
  /// result. The watermark's URL is last, because it may contain separators.
  public var canonicalText: String {
    let text = TransformDraft(self).text
    guard let watermark else { return text }
    return text + (text.isEmpty ? "" : "&") + "watermark_url=" + watermark.keyURL.text
  }
}
