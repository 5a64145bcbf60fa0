// ClientHintsTests: tests of w=auto and dpr=auto: values of hints, steps and errors.

@testable import Core
import TestSupport
import Testing

@testable import Serving

@Suite(.onOwnThreads) struct ClientHintsTests {
  /// Returns what the fields mean for a query.
  private func hints(
    _ query: String, _ fields: [String: String],
    change: (inout ServerConfiguration) -> Void = { _ in },
    rules derived: (RequestRules) -> RequestRules = { $0 }
  ) throws -> ClientHints {
    var configuration = ServerConfiguration()
    change(&configuration)
    let rules = derived(RequestRules(configuration))
    let (request, needs) = try ImageParameter.parseAdaptive(
      Array("url=https://h/a.png&\(query)".utf8), rules: rules, kind: .image)
    guard let use = HintUse(needs, of: request, rules: rules) else { return ClientHints() }
    let texts = fields.mapValues { $0.utf8CString }
    func look(
      _ name: StaticString, _ result: (UnsafePointer<CChar>?) -> Void
    ) { texts[name.description].map { $0.withUnsafeBufferPointer { result($0.baseAddress) } } }
    // The texts outlive the call, so the pointers stay valid during it.
    return withExtendedLifetime(texts) {
      use.hints { name in
        var found: UnsafePointer<CChar>?
        look(name) { found = $0 }
        return found
      }
    }
  }

  @Test(arguments: [
    ("1", 1), ("1.0", 1), ("0.25", 1), ("1.1", 1.5), ("1.100000023841858", 1.5), ("1.5", 1.5),
    ("2", 2), ("2.0000001", 2), ("2.625", 3), ("3.5", 4), ("4", 4), ("999", 4),
  ])
  func `dpr=auto rounds the density up to a step`(value: String, density: Double) throws {
    for name in ["Sec-CH-DPR", "DPR"] {
      for query in ["dpr=auto", "scale=auto"] {
        #expect(try hints(query, [name: value]).scale == density)
      }
    }
  }

  @Test(arguments: [
    "", "0", "0.0", "-1", "+2", "2x", "1.", ".5", "1..2", "1,2", "\"2\"", "2;a", "nan", "inf",
    "1e3",
    "99999999999999999999", "0x2",
  ])
  func `a malformed density counts as absent`(value: String) throws {
    #expect(try hints("dpr=auto", ["Sec-CH-DPR": value]).isEmpty)
    #expect(try hints("dpr=auto", ["Sec-CH-DPR": value, "DPR": "2"]).scale == 2)
  }

  @Test func `w=auto takes physical pixels, rounded up, for a box of as many`() throws {
    for (pixels, width) in [("1", 32), ("320", 320), ("321", 384), ("3841", 3_840)] {
      #expect(try hints("w=auto", ["Sec-CH-Width": pixels]).width == width)
      #expect(try hints("width=auto", ["Width": pixels]).width == width)
    }
    // Given a density, points × density are at least these pixels.
    #expect(try hints("w=auto&scale=2", ["Sec-CH-Width": "640"]).width == 320)
    #expect(try hints("w=auto&scale=0.5", ["Sec-CH-Width": "640"]).width == 1_280)
    #expect(try hints("w=auto&scale=0.001", ["Sec-CH-Width": "640"]).width == 65_535)
    let both = ["Sec-CH-Width": "600", "Sec-CH-DPR": "1.5"]
    #expect(try hints("w=auto&dpr=auto", both) == ClientHints(scale: 1.5, width: 427))
    // Without `dpr=auto` the density of the client does not matter.
    #expect(try hints("w=auto", both) == ClientHints(width: 640))
  }

  @Test(arguments: ["", "0", "-1", "1.5", "a", "9999999999", "32 0"])
  func `a malformed width counts as absent`(value: String) throws {
    #expect(try hints("w=auto", ["Sec-CH-Width": value]).isEmpty)
  }

  @Test func `configured steps take the place of the built-in ones, for signed requests, too`()
    throws
  {
    for rules in [{ $0 }, \.forSigned] as [(RequestRules) -> RequestRules] {
      func width(_ query: String, _ pixels: String) throws -> Int? {
        try hints(
          query, ["Sec-CH-Width": pixels], change: { $0.sizeSteps = [300, 600] }, rules: rules
        ).width
      }
      #expect(try width("w=auto", "299") == 300)
      #expect(try width("w=auto", "301") == 600)
      #expect(try width("w=auto", "5000") == 600)
      #expect(try width("w=auto&scale=2", "590") == 300)
    }
  }

  @Test(arguments: [
    ("on", true), ("On", true), ("on; a", true), ("on, b", true), ("off", false), ("", false),
    ("once", false), ("1", false), (" on", false),
  ])
  func `Save-Data counts if its first token is on`(value: String, savesData: Bool) throws {
    let found = try hints(
      "w=3", ["Save-Data": value], change: { $0.imaging.saveDataReduction = 20 })
    #expect(found.savesData == savesData)
  }

  @Test func `Save-Data lowers only a quality that the request leaves open`() throws {
    func follows(_ query: String, lower: Int = 20, redirects: Bool = false) throws -> Bool {
      try hints(
        query, ["Save-Data": "on"],
        change: {
          $0.imaging.saveDataReduction = lower
          $0.redirectsAuto = redirects
          $0.presets = ["fine": "quality=90", "small": "w=30"]
        }
      ).savesData
    }
    for query in ["w=3", "format=webp", "format=jpeg", "preset=small"] {
      #expect(try follows(query), "\(query)")
      #expect(try !follows(query, lower: 0))
      #expect(try !follows(query, redirects: true))
    }
    for query in ["quality=80", "maxbytes=5000", "format=png", "format=gif", "preset=fine"] {
      #expect(try !follows(query), "\(query)")
    }
    #expect(try !follows("format=placeholder"))
    #expect(FormatQualities().lowered(by: 70)[.avif] == 1)
  }

  @Test func `presets follow hints, and the request's own numbers take precedence`() throws {
    let fields = ["Sec-CH-DPR": "2", "Sec-CH-Width": "640"]
    func preset(_ query: String) throws -> ClientHints {
      try hints(query, fields, change: { $0.presets = ["hero": "w=auto&dpr=auto"] })
    }
    #expect(try preset("preset=hero") == ClientHints(scale: 2, width: 320))
    #expect(try preset("preset=hero&w=100") == ClientHints(scale: 2))
    #expect(try preset("preset=hero&w=100&scale=1").isEmpty)
  }

  @Test func `without hints auto is as if the parameter were absent`() throws {
    let rules = RequestRules(ServerConfiguration())
    let auto = try ImageParameter.parse(
      Array("url=https://h/a.png&w=auto&dpr=auto&h=5".utf8), rules: rules)
    let absent = try ImageParameter.parse(Array("url=https://h/a.png&h=5".utf8), rules: rules)
    #expect(auto.key == absent.key)
  }

  @Test(arguments: ["h=auto", "w=Auto", "w=auto&w=3", "scale=auto&dpr=auto", "quality=auto"])
  func `auto elsewhere, and twice, is refused`(query: String) throws {
    #expect(throws: ImageError.self) { try hints(query, [:]) }
  }

  @Test func `a preset with auto does not go with redirects`() {
    var configuration = ServerConfiguration()
    configuration.presets = ["a": "w=auto", "b": "dpr=auto", "c": "w=3"]
    #expect(configuration.invalidPresets.isEmpty)
    configuration.redirectsAuto = true
    #expect(configuration.invalidPresets.map(\.name) == ["a", "b"])
  }
}
