// Imaginary: the addresses of imaginary, which takes sources in the bodies of POSTs.

import Core
import FoundationEssentials

/// The door of imaginary 1.2, as Nextcloud's preview provider calls it: `POST /pipeline` with
/// operations as JSON, or one operation as the path. A GET names its source by `url` or `file`.
struct ImaginaryDoor: PeerDoor {
  let name = Peer.imaginary.rawValue
  /// An address without a source means the body.
  let takesBodies = true
  let rows =
    ImaginaryDraft.operations.sorted { $0.key < $1.key }.map {
      DoorOptionRow(names: ["/" + $0.key], standing: $0.value)
    } + ImaginaryDraft.table.rows
  private let sources: SourceRules
  private let secrets: [[UInt8]]
  /// imaginary's own limit of a pipeline.
  private static let mostOperations = 10

  init(_ options: DoorOptions) {
    sources = SourceRules(options)
    secrets = options.secrets
  }

  func claims(_ address: DoorAddress) -> Bool {
    ["/pipeline", "/info"].contains(address.path)
      || ImaginaryDraft.operations[String(address.path.dropFirst())] != nil
  }

  /// An operation of a pipeline.
  private struct Operation: Decodable {
    let operation: String
    let params: [String: Scalar]?

    /// A text, a number or a flag, which imaginary takes for each other.
    struct Scalar: Decodable {
      let text: String

      init(from decoder: any Decoder) throws {
        let value = try decoder.singleValueContainer()
        let flag = (try? value.decode(Bool.self)).map { "\($0)" }
        let number = (try? value.decode(Double.self)).map(\.written)
        text = try flag ?? number ?? value.decode(String.self)
      }
    }
  }

  /// Unknown parameters are ignored.
  func read(_ address: DoorAddress) throws(DoorFault) -> DoorTranslation {
    let items = Dictionary(
      address.query.queryItems(hasForms: true).map { ($0.name, $0.value) }
    ) { first, _ in first }
    var draft = ImaginaryDraft()
    switch address.path {
    case "/info": draft.translation.isDescription = true
    case "/pipeline":
      let operations = items["operations"].flatMap {
        try? JSONDecoder().decode([Operation].self, from: Data($0.utf8))
      }
      guard let operations, 1...Self.mostOperations ~= operations.count else {
        throw .invalid("operations: 1 to \(Self.mostOperations) operations as JSON")
      }
      for step in operations {
        try draft.add(step.operation, (step.params ?? [:]).mapValues(\.text))
      }
    default: try draft.add(String(address.path.dropFirst()), items)
    }
    draft.finish()
    if let source = items["url"] ?? items["file"].map({ "/" + PercentEncoding.encodePath($0) }) {
      draft["url"] = try sources.url(of: source)
    }
    draft.translation.isSigned = !secrets.isEmpty
    return draft.translation
  }

  /// The key is in the query, or else in a field.
  func secret(of address: DoorAddress) -> DoorSecret? {
    let key = address.query.queryItems(hasForms: true).first { $0.name == "key" }?.value ?? ""
    let isRight = secrets.contains { HMAC.isEqual(Array(key.utf8), $0) }
    guard !secrets.isEmpty, !isRight else { return nil }
    return DoorSecret(
      "API-Key", key.isEmpty ? secrets : [],
      refusal: refusal(of: .denied("invalid or missing API key")))
  }

  func refusal(of fault: DoorFault) -> DoorAnswer {
    let status = fault.kind == .denied ? 401 : fault.kind == .unsupported ? 501 : 400
    return answer(status, fault.reason, reason: fault.reason)
  }

  func status(of error: ImageError) -> (Int, String) {
    let status =
      switch error.cause {
      case .unsupportedFormat, .unsupportedKind: 415
      case .missingParameter, .invalidURL, .invalidParameter, .undecodable, .forbiddenSource: 400
      default: error.status
      }
    return (status, error.message)
  }

  func answer(_ status: Int, _ message: String, reason: String) -> DoorAnswer {
    DoorAnswer(
      status: status, contentType: "application/json",
      body: "{\"message\":\(message.json),\"status\":\(status)}", reason: reason)
  }
}

private struct ImaginaryDraft: OptionDraft {
  var translation = DoorTranslation()
  var width: Int?
  var height: Int?
  var top = 0
  var left = 0
  var areaWidth = 0
  var areaHeight = 0
  var ratio: String?
  var crops: Bool?
  var isForced = false
  private var isUpright = false
  /// Whether an operation has changed the size, after which another would see its result.
  private var isSized = false

  /// The operations, and how each fares.
  static let operations: [String: DoorStanding] = [
    "resize": .near("the rest of the box is of `background`; imaginary repeats the edges"),
    "fit": .exact, "thumbnail": .exact, "enlarge": .exact, "autorotate": .exact,
    "rotate": .exact, "flip": .exact, "flop": .exact, "convert": .exact, "extract": .exact,
    "crop": .near("a source that is smaller in one direction is not enlarged"),
    "smartcrop": .near("faces, or another measure of what draws the eye"),
    "blur": .near("`minampl` does not count"),
    "zoom": .refused("/image repeats no pixels"),
    "watermark": .refused("/image writes no text"),
    "watermarkimage": .refused("watermarks are the operator's"),
  ]

  /// Adds an operation with its parameters.
  mutating func add(_ operation: String, _ parameters: [String: String]) throws(DoorFault) {
    guard let standing = Self.operations[operation] else {
      throw .invalid("\(operation.prefix(32)): imaginary has no such operation")
    }
    if case .refused(let reason) = standing { throw .unsupported("\(operation): \(reason)") }
    for (name, value) in parameters.sorted(by: { $0.key < $1.key }) {
      do { try Self.table.read(name, [value], into: &self) } catch { throw error.of(name) }
    }
    switch operation {
    case "autorotate": isUpright = true
    case "flip": self["flip"] = "v"
    case "flop": self["flip"] = "h"
    case "resize", "fit", "thumbnail", "enlarge", "extract", "crop", "smartcrop":
      guard !isSized else { throw .unsupported("\(operation): one operation may change the size") }
      isSized = true
      if operation == "extract" { try extract() } else { try size(operation) }
    default: break
    }
    if standing != .exact, operation != "resize" || self["fit"] == "contain" {
      note(operation, standing)
    }
  }

  private mutating func extract() throws(DoorFault) {
    guard width == nil, height == nil else { throw .unsupported("extract: only an area") }
    guard top + left > 0, areaWidth > 0, areaHeight > 0 else {
      throw .invalid("missing required params: top, left, areawidth, areaheight")
    }
    self["crop"] = "\(left),\(top),\(areaWidth),\(areaHeight)"
  }

  /// Reads what an operation makes of the box.
  private mutating func size(_ operation: String) throws(DoorFault) {
    let needsBoth = operation == "fit" || operation == "enlarge"
    guard needsBoth ? width != nil && height != nil : width ?? height != nil else {
      throw .invalid("missing required param: height \(needsBoth ? "and" : "or") width")
    }
    (self["w"], self["h"]) = (width.map { "\($0)" }, height.map { "\($0)" })
    if width == nil || height == nil { self["ar"] = ratio }
    if operation == "smartcrop" { self["position"] = "faces" }
    guard width != nil && height != nil || self["ar"] != nil else {
      if operation.hasSuffix("crop") { throw .unsupported("\(operation): without width or height") }
      return
    }
    switch operation {
    case _ where isForced, "thumbnail": (self["fit"], self["enlarge"]) = ("fill", "1")
    case "resize" where crops != true: self["fit"] = "contain"
    case "fit": break
    case "enlarge": (self["fit"], self["enlarge"]) = ("cover", "1")
    default: self["fit"] = "cover-down"
    }
  }

  /// Writes what depends on several operations.
  mutating func finish() {
    self["scale"] = "1"
    if isUpright { self["orient"] = nil }
    if self["format"] == nil { self["format"] = "source" }
  }
}

extension ImaginaryDraft {
  private typealias Option = DoorOption<Self>

  /// The parameters, in the order of imaginary's own list. Empty ones count as absent.
  static let table = OptionTable<Self>([
    Option("width") { given, draft throws(DoorFault) in draft.width = try side(given) },
    Option("height") { given, draft throws(DoorFault) in draft.height = try side(given) },
    Option("top") { given, draft throws(DoorFault) in draft.top = try side(given) ?? 0 },
    Option("left") { given, draft throws(DoorFault) in draft.left = try side(given) ?? 0 },
    Option("areawidth") { given, draft throws(DoorFault) in
      draft.areaWidth = try side(given) ?? 0
    },
    Option("areaheight") { given, draft throws(DoorFault) in
      draft.areaHeight = try side(given) ?? 0
    },
    Option("quality") { given, draft throws(DoorFault) in
      let quality = try given.number(0, 0...100) ?? 0
      draft["quality"] = quality < 0.5 ? nil : quality.rounded().written
    },
    Option("rotate", .quarters(0...3_600)),
    Option("flip") { given, draft throws(DoorFault) in
      if try isOn(given) { draft["flip"] = "v" }
    },
    Option("flop") { given, draft throws(DoorFault) in
      if try isOn(given) { draft["flip"] = "h" }
    },
    Option("force") { given, draft throws(DoorFault) in draft.isForced = try isOn(given) },
    Option("nocrop") { given, draft throws(DoorFault) in draft.crops = try !isOn(given) },
    Option("norotation") { given, draft throws(DoorFault) in
      draft["orient"] = try isOn(given) ? "0" : nil
    },
    Option("type=heif", .refused("HEIC is read, and not written")),
    Option("type", to: "format", .choice("jpeg jpg=jpeg png webp avif gif tiff auto =")),
    Option(
      "gravity", to: "position", near: "`smart` is our `faces`",
      .choice("north=top south=bottom east=right west=left smart=faces centre= center= =")),
    Option("background") { given, draft in draft["background"] = Colors.css("rgb(\(given[0]))") },
    Option("sigma") { given, draft throws(DoorFault) in
      let sigma = try given.number(0, 0...1_000) ?? 0
      draft["blur"] = sigma < 0.3 ? nil : min(sigma, 250).written
    },
    Option("colorspace") { given, draft in draft["grayscale"] = given[0] == "bw" ? "1" : nil },
    Option("aspectratio") { given, draft in draft.ratio = given.text(0) },
    Option("palette") { given, draft throws(DoorFault) in
      draft["colours"] = try isOn(given) ? "256" : nil
    },
    Option("stripmeta noprofile", .ignored("results have no metadata")),
    Option("compression speed interlace", .ignored("effort is the server's")),
    Option("key operations url file"),
  ])

  private static func side(_ given: Arguments) throws(DoorFault) -> Int? {
    let side = try given.number(0, 0...65_535) ?? 0
    return side < 0.5 ? nil : Int(side.rounded())
  }

  private static func isOn(_ given: Arguments) throws(DoorFault) -> Bool {
    let short = ["": false, "0": false, "1": true, "t": true, "f": false]
    let text = given[0].lowercased()
    guard let flag = short[text] ?? Bool(text) else { throw .invalid("true or false") }
    return flag
  }
}
