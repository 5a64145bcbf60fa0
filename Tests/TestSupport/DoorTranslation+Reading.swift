// DoorTranslation+Reading: whether Pictor reads what a door asks for.

import Core

extension DoorTranslation.Parameter {
  /// Whether Pictor reads the parameter. Those of a request alone are known by name.
  public var isRead: Bool {
    guard let row = TransformParameter.table.first(where: { $0.name == name }) else {
      return ["url", "filename", "maxage", "download", "watermark"].contains(name)
    }
    var draft = TransformDraft()
    return name + value == "wauto" || row.read(ParameterText(value), &draft)
  }
}
