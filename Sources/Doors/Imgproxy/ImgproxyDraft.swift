// ImgproxyDraft: what the options of an address of imgproxy ask for.

import Core

/// The options of an address, the last of each.
struct ImgproxyDraft: Sendable {
  /// How the image comes into its box, by imgproxy's names.
  static let fits: [String: Fit] = [
    "fit": .inside, "fill": .cover, "fill-down": .coverDown, "force": .fill, "auto": .auto,
  ]

  var fit = Fit.inside
  var width = 0
  var height = 0
  var minWidth = 0
  var minHeight = 0
  var zoom = (x: 1.0, y: 1.0)
  var dpr = 1.0
  var enlarges = false
  var gravity = ImgproxyGravity()
  /// Where the image lies in a box that it is extended to; `nil`: it is not.
  var extend: ImgproxyGravity?
  /// Likewise, for the shape of the box.
  var extendRatio: ImgproxyGravity?
  /// The part that is used. Without a gravity, it has that of `gravity`.
  var crop: (width: Double, height: Double, gravity: ImgproxyGravity?)?
  var padding = Edges()
  var watermarkOffset: (x: Double, y: Double)?
  var quality = 0
  var qualities: [ImgproxyFormat: Int] = [:]
  var format: ImgproxyFormat?
  var skipped: Set<ImgproxyFormat> = []
  var isRaw = false
  var expiry = 0
  /// Parameters that depend on one option each.
  var own = DoorTranslation()
  /// Presets that the option just read names.
  var presets: [String] = []

  /// What is not exact, in the order of the address.
  private(set) var notes: [DoorNote] = []
  /// The options that are exact with most values. Only `mark` adds their notes.
  private static let mostlyExact: Set = [
    "zoom", "gravity", "crop", "watermark", "strip_color_profile", "resize", "dpr", "extend",
    "extend_aspect_ratio", "padding", "min-width", "min-height", "blur", "sharpen", "format",
  ]

  /// Adds the note of an option that is never exact.
  mutating func addNote(of option: DoorOption<ImgproxyDraft>) {
    if let name = option.names.first, !Self.mostlyExact.contains(name) { mark(name, if: true) }
  }

  /// Adds the note of an option if it is not exact with its value.
  mutating func mark(_ name: String, if isNear: Bool) {
    guard isNear, let standing = ImgproxyDoor.options[name]?.standing, standing != .exact else {
      return
    }
    let note = DoorNote(name, standing)
    if !notes.contains(note) { notes.append(note) }
  }
}

/// The formats that imgproxy names.
enum ImgproxyFormat: String, CaseIterable, Sendable {
  case jpg, jpeg, png, webp, avif, jxl, gif, tiff, svg, ico, bmp, heic

  /// The value of `format`; `nil` if Pictor does not write it.
  var own: String? {
    switch self {
    case .jpg: "jpeg"
    case .svg, .ico, .bmp, .heic: nil
    default: rawValue
    }
  }

  /// Whether the quality of this format alone can be set.
  var isLossy: Bool { [.jpg, .jpeg, .webp, .avif, .jxl].contains(self) }

  /// Whether imgproxy keeps the format of such a source. Of all others it makes GIF, PNG or JPEG.
  var isKept: Bool { [.jpg, .jpeg, .png, .gif, .svg].contains(self) }

  /// Returns the format of a source by its name.
  static func ofSource(_ url: SourceURL) -> ImgproxyFormat? {
    guard let dot = url.fileName.lastIndex(of: ".") else { return nil }
    let name = url.fileName[dot...].dropFirst().lowercased()
    return ImgproxyFormat(rawValue: name == "tif" ? "tiff" : name)
  }
}
