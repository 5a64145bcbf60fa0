// ImaginaryDoor: the addresses of imaginary, which takes sources in the bodies of POSTs.

import Core
import FoundationEssentials

/// The door of imaginary 1.2, as Nextcloud's preview provider calls it: `POST /pipeline` with
/// operations as JSON, or one operation as the path. A GET names its source by `url` or `file`.
public struct ImaginaryDoor: Door {
  /// The name of the peer.
  public let name = "imaginary"
  /// An address without a source means the body.
  public let takesBodies = true
  private let sources: SourceRules
  private let secrets: [[UInt8]]
  /// imaginary's own limit of a pipeline.
  private static let mostOperations = 10

  /// The rows of the peer's page.
  public static var rows: [DoorOptionRow] {
    ImaginaryDraft.operations.map { DoorOptionRow(names: ["/" + $0.key], standing: $0.value) }
      .sorted { $0.names[0] < $1.names[0] } + ImaginaryDraft.table.map(\.row)
  }

  /// Creates the door.
  public init(_ options: DoorOptions) {
    sources = SourceRules(options)
    secrets = options.secrets
  }

  /// Whether the path names an operation.
  public func claims(_ address: DoorAddress) -> Bool {
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
        text =
          if let flag = try? value.decode(Bool.self) {
            "\(flag)"
          } else if let number = try? value.decode(Double.self) {
            Argument.written(number)
          } else {
            try value.decode(String.self)
          }
      }
    }
  }

  /// Translates an address. Unknown parameters are ignored.
  public func translate(_ address: DoorAddress) throws(DoorAnswer) -> DoorTranslation {
    let items = Dictionary(
      address.query.queryItems(hasForms: true).map { ($0.name, $0.value) }
    ) { first, _ in first }
    var draft = ImaginaryDraft()
    do throws(OptionFault) {
      switch address.path {
      case "/info": draft.translation.isDescription = true
      case "/pipeline":
        let operations = items["operations"].flatMap {
          try? JSONDecoder().decode([Operation].self, from: Data($0.utf8))
        }
        guard let operations, 1...Self.mostOperations ~= operations.count else {
          throw OptionFault("operations: 1 to \(Self.mostOperations) operations as JSON")
        }
        for step in operations {
          try draft.add(step.operation, (step.params ?? [:]).mapValues(\.text))
        }
      default: try draft.add(String(address.path.dropFirst()), items)
      }
    } catch {
      throw Self.refusal(error.isUnsupported ? 501 : 400, error.reason)
    }
    var translation = draft.finished()
    if let source = items["url"] ?? items["file"].map({ "/" + PercentEncoding.encodePath($0) }) {
      translation["url"] = try sources.url(of: source) { fault in
        switch fault {
        case .invalid(let reason): Self.refusal(400, reason)
        case .forbidden(let reason): Self.refusal(400, reason)
        }
      }
    }
    if !secrets.isEmpty {
      let refusal = Self.refusal(401, "invalid or missing API key")
      translation.isSigned = true
      if let key = items["key"], !key.isEmpty {
        guard secrets.contains(where: { HMAC.isEqual(Array(key.utf8), $0) }) else { throw refusal }
      } else {
        translation.secret = DoorSecret("API-Key", secrets, refusal: refusal)
      }
    }
    return translation
  }

  /// Returns imaginary's JSON.
  public func answer(to error: ImageError) -> DoorAnswer {
    let status =
      switch error.cause {
      case .unsupportedFormat, .unsupportedKind: 415
      case .missingParameter, .invalidURL, .invalidParameter, .undecodable, .forbiddenSource: 400
      default: error.status
      }
    return Self.refusal(status, error.message)
  }

  private static func refusal(_ status: Int, _ message: String) -> DoorAnswer {
    DoorAnswer(
      status: status, contentType: "application/json",
      body: "{\"message\":\(message.json),\"status\":\(status)}", reason: message)
  }
}

/// What the operations of an address add up to.
struct ImaginaryDraft: OptionDraft {
  var translation = DoorTranslation()
  private var width: Int?
  private var height: Int?
  private var area: [String: Int] = [:]
  private var ratio: String?
  private var isUpright = false
  private var crops: Bool?
  private var isForced = false
  /// Whether an operation has changed the size, after which another would see its result.
  private var isSized = false

  /// The operations, and how each fares.
  static let operations: [String: DoorStanding] = [
    "resize": .near("the rest of the box is of `background`; imaginary repeats the edges"),
    "fit": .exact, "thumbnail": .exact, "enlarge": .exact, "autorotate": .exact,
    "rotate": .exact, "flip": .exact, "flop": .exact, "convert": .exact, "extract": .exact,
    "crop": .near("a source that is smaller in one direction is not enlarged"),
    "smartcrop": .near("by another measure of what draws the eye"),
    "blur": .near("`minampl` does not count"),
    "zoom": .refused("/image repeats no pixels"),
    "watermark": .refused("/image writes no text"),
    "watermarkimage": .refused("watermarks are the operator's"),
  ]
  private static let options = OptionIndex(table)

  /// Adds an operation with its parameters.
  mutating func add(_ operation: String, _ parameters: [String: String]) throws(OptionFault) {
    guard let standing = Self.operations[operation] else {
      throw OptionFault("\(operation.prefix(32)): imaginary has no such operation")
    }
    if case .refused(let reason) = standing { throw .unsupported("\(operation): \(reason)") }
    for (name, value) in parameters.sorted(by: { $0.key < $1.key }) {
      do throws(OptionFault) { try Self.options.read(name, [value], into: &self) } catch {
        var named = OptionFault("\(name): \(error.reason)")
        named.isUnsupported = error.isUnsupported
        throw named
      }
    }
    switch operation {
    case "autorotate": isUpright = true
    case "flip": translation["flip"] = "v"
    case "flop": translation["flip"] = "h"
    default: break
    }
    if ["resize", "fit", "thumbnail", "enlarge", "extract", "crop", "smartcrop"].contains(operation)
    {
      guard !isSized else { throw .unsupported("\(operation): one operation may change the size") }
      isSized = true
      try size(operation)
    }
    if standing != .exact, operation != "resize" || translation["fit"] == "contain" {
      translation.notes.append(DoorNote(operation, standing))
    }
  }

  /// Reads what an operation makes of the box.
  private mutating func size(_ operation: String) throws(OptionFault) {
    let needsBoth = operation == "fit" || operation == "enlarge"
    guard
      operation == "extract" || (needsBoth ? width != nil && height != nil : width ?? height != nil)
    else { throw OptionFault("missing required param: height \(needsBoth ? "and" : "or") width") }
    if operation == "extract" {
      guard width == nil, height == nil else { throw .unsupported("extract: only an area") }
      let sides = ["left", "top", "areawidth", "areaheight"].map { area[$0] ?? 0 }
      guard sides[0] + sides[1] > 0, sides[2] > 0, sides[3] > 0 else {
        throw OptionFault("missing required params: top, left, areawidth, areaheight")
      }
      translation["crop"] = sides.map { "\($0)" }.joined(separator: ",")
      return
    }
    translation["w"] = width.map { "\($0)" }
    translation["h"] = height.map { "\($0)" }
    translation["ar"] = width == nil || height == nil ? ratio : nil
    guard width != nil && height != nil || translation["ar"] != nil else {
      if operation == "crop" || operation == "smartcrop" {
        throw .unsupported("\(operation): without width or height")
      }
      return
    }
    if isForced || operation == "thumbnail" {
      (translation["fit"], translation["enlarge"]) = ("fill", "1")
    } else if operation == "resize" && crops != true {
      (translation["fit"], translation["enlarge"]) = ("contain", nil)
    } else if operation != "fit" {
      translation["fit"] = operation == "enlarge" ? "cover" : "cover-down"
      translation["enlarge"] = operation == "enlarge" ? "1" : nil
    }
    if operation == "smartcrop" { translation["position"] = "attention" }
  }

  /// Returns the translation, with what depends on several operations.
  func finished() -> DoorTranslation {
    var result = translation
    result["scale"] = "1"
    if isUpright { result["orient"] = nil }
    if result["format"] == nil { result["format"] = "source" }
    return result
  }

  /// The parameters, in the order of imaginary's own list.
  static let table: [DoorOption<ImaginaryDraft>] = [
    DoorOption("width", into: \.width, side), DoorOption("height", into: \.height, side),
    DoorOption("top", into: \.area["top"], side), DoorOption("left", into: \.area["left"], side),
    DoorOption("areawidth", into: \.area["areawidth"], side),
    DoorOption("areaheight", into: \.area["areaheight"], side),
    DoorOption("quality", to: "quality") { text throws(OptionFault) in
      let quality = try Argument.number(text.isEmpty ? "0" : text, in: 0...100)
      return quality == 0 ? nil : Argument.written(quality.rounded())
    },
    DoorOption("rotate", to: "rotate", Argument.quarters(0...3_600)),
    DoorOption("flip") { arguments, draft throws(OptionFault) in
      if try isOn(arguments[0]) { draft.translation["flip"] = "v" }
    },
    DoorOption("flop") { arguments, draft throws(OptionFault) in
      if try isOn(arguments[0]) { draft.translation["flip"] = "h" }
    },
    DoorOption("force", into: \.isForced, isOn),
    DoorOption("nocrop", into: \.crops) { text throws(OptionFault) in try !isOn(text) },
    DoorOption("norotation", to: "orient") { text throws(OptionFault) in
      try isOn(text) ? "0" : nil
    },
    DoorOption("type=heif", standing: .refused("HEIC is read, and not written")),
    DoorOption(
      "type", to: "format", Argument.choice("jpeg jpg=jpeg png webp avif gif tiff auto =")),
    DoorOption(
      "gravity", to: "position", standing: .near("`smart` is our attention"),
      Argument.choice(
        "north=top south=bottom east=right west=left smart=attention centre= center= =")
    ),
    DoorOption("background", to: "background") { text throws(OptionFault) in
      Colors.css("rgb(\(text))")
    },
    DoorOption("sigma", to: "blur") { text throws(OptionFault) in
      let sigma = try Argument.number(text.isEmpty ? "0" : text, in: 0...1_000)
      return sigma < 0.3 ? nil : Argument.written(min(sigma, 250))
    },
    DoorOption("colorspace", to: "grayscale") { text throws(OptionFault) in
      text == "bw" ? "1" : nil
    },
    DoorOption("aspectratio", into: \.ratio) { text throws(OptionFault) in
      text.isEmpty ? nil : text
    },
    DoorOption("palette", to: "colours") { text throws(OptionFault) in
      try isOn(text) ? "256" : nil
    },
    DoorOption("stripmeta", "noprofile", standing: .ignored("results have no metadata")),
    DoorOption("compression", "speed", "interlace", standing: .ignored("effort is the server's")),
    DoorOption("key", "operations", "url", "file"),
  ]

  private static let side: @Sendable (String) throws(OptionFault) -> Int? = {
    text throws(OptionFault) in
    let side = try Argument.number(text.isEmpty ? "0" : text, in: 0...65_535)
    return side < 0.5 ? nil : Int(side.rounded())
  }

  private static let isOn: @Sendable (String) throws(OptionFault) -> Bool = {
    text throws(OptionFault) in
    guard
      let flag = ["": false, "0": false, "1": true, "t": true, "f": false][text.lowercased()]
        ?? Bool(text.lowercased())
    else { throw OptionFault("true or false") }
    return flag
  }
}
