// PageDescriptionTests: the description of parameters says what the parser accepts.

@testable import Core
import FoundationEssentials
import TestSupport
import Testing

@testable import Serving

@Suite struct PageDescriptionTests {
  private func configuration() throws -> ServerConfiguration {
    var configuration = ServerConfiguration()
    configuration.presets = ["thumb": "w=300", "<b>": "w=9"]
    configuration.watermarks = ["logo": try SourceURL(parsing: "https://h/logo.png")]
    configuration.samples = ["https://h/a.png"]
    return configuration
  }

  private func description(of configuration: ServerConfiguration) -> PageDescription {
    PageDescription(
      of: .everyone, configuration: configuration, rules: RequestRules(configuration))
  }

  private func parameters(_ configuration: ServerConfiguration) -> [PageDescription.Parameter] {
    description(of: configuration).groups.flatMap(\.parameters)
  }

  /// The parameters that are allowed only together with others.
  private func beside(_ name: String) -> [(String, String)] {
    switch name {
    case "placeholder": [("format", "placeholder")]
    case _ where name.hasPrefix("watermark_"): [("watermark", "logo")]
    default: []
    }
  }

  /// Parses a request with one parameter by the rules for clients, or by `rules`.
  private func parse(
    _ name: String, _ value: String, _ configuration: ServerConfiguration,
    rules: RequestRules? = nil
  ) -> Result<ImageRequest, ImageError> {
    let url = name == "url" ? [] : [("url", "https://h/a.png")]
    let preset =
      rules == nil && configuration.presetsOnly && name != "preset" ? [("preset", "thumb")] : []
    let query = (url + preset + beside(name) + [(name, value)])
      .map { "\($0)=" + encoded($1) }.joined(separator: "&")
    do throws(ImageError) {
      return .success(
        try ImageParameter.parse(
          Array(query.utf8), rules: rules ?? RequestRules(configuration)))
    } catch {
      return .failure(error)
    }
  }

  private func encoded(_ text: String) -> String {
    text.utf8.map { "%" + ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
  }

  /// Whether an operator may use the value: operators may use every parameter.
  private func isAccepted(
    _ name: String, _ value: String, _ configuration: ServerConfiguration
  ) -> Bool {
    let rules = RequestRules(configuration).forOperators
    return (try? parse(name, value, configuration, rules: rules).get()) != nil
  }

  @Test func `each row of the table is in it once, in its group, with a line of help`() throws {
    let groups = description(of: try configuration()).groups
    #expect(groups.map(\.title) == ParameterGroup.allCases.map(\.rawValue))
    #expect(groups.flatMap(\.parameters).map(\.name) == ImageParameter.table.map(\.name))
    for parameter in groups.flatMap(\.parameters) {
      #expect(!parameter.help.isEmpty && !parameter.help.hasSuffix("."), "\(parameter.name)")
      #expect(parameter.help.utf8.count <= 100, "\(parameter.name)")
      #expect(!parameter.allowed.isEmpty)
      // Each has a control: values by name, numbers or another form
      #expect(
        !parameter.names.isEmpty || parameter.numbers != nil || parameter.form != nil,
        "\(parameter.name)")
    }
  }

  @Test func `the parser accepts each name and both ends of each range`() throws {
    let configuration = try configuration()
    for parameter in parameters(configuration) {
      for name in parameter.names {
        #expect(isAccepted(parameter.name, name, configuration), "\(parameter.name)=\(name)")
      }
      guard let numbers = parameter.numbers else { continue }
      let lowest = numbers.above ? 0.01 : numbers.minimum
      for number in [lowest, numbers.maximum ?? 9_007_199_254_740_991] {
        let text = numbers.whole ? "\(Int(number))" : "\(number)"
        #expect(isAccepted(parameter.name, text, configuration), "\(parameter.name)=\(text)")
      }
    }
  }

  @Test func `the parser refuses other names and numbers out of range, naming the parameter`()
    throws
  {
    let configuration = try configuration()
    let rules = RequestRules(configuration).forOperators
    let texts = ["sig", "url", "filename"]
    for parameter in parameters(configuration) where !texts.contains(parameter.name) {
      var wrong = ["", "nonsense", " ", "-1", "1e3", "NaN", "0x1", "<img src=x>", "1,2,3,4,5"]
      if let numbers = parameter.numbers {
        if numbers.above { wrong.append("0") }
        if numbers.minimum <= -1 { wrong.removeAll { $0 == "-1" } }
        if numbers.minimum > 0, !numbers.above {
          wrong.append(numbers.whole ? "\(Int(numbers.minimum) - 1)" : "\(numbers.minimum - 0.05)")
        }
        if let maximum = numbers.maximum {
          wrong.append(numbers.whole ? "\(Int(maximum) + 1)" : "\(maximum + 0.05)")
        }
        if numbers.whole { wrong.append("1.5") }
      } else if parameter.form == nil {
        wrong += parameter.names.map { $0 + "x" } + ["2", "9"]
      }
      // Three hexadecimal digits are a colour.
      if parameter.form == "color" { wrong.removeAll { $0 == "1e3" } }
      for value in wrong where !parameter.names.contains(value) {
        guard case .failure(let error) = parse(parameter.name, value, configuration, rules: rules)
        else {
          Issue.record("\(parameter.name)='\(value)' is accepted")
          continue
        }
        #expect(
          error.parameter == parameter.name && error.status == 400, "\(parameter.name)=\(value)")
        guard case .invalidParameter(_, _, let allowed) = error else { continue }
        // A suggestion may follow.
        #expect(allowed.hasPrefix(parameter.allowed))
      }
    }
  }

  @Test func `the standard value of a parameter is the same as its absence`() throws {
    let configuration = try configuration()
    for parameter in parameters(configuration) {
      guard let standard = parameter.standard else { continue }
      let base = beside(parameter.name).first
      let without = try parse(base?.0 ?? "w", base?.1 ?? "9", configuration).get()
      let with =
        base == nil
        ? try ImageParameter.parse(
          Array("url=https://h/a.png&w=9&\(parameter.name)=\(standard)".utf8),
          rules: RequestRules(configuration))
        : try parse(parameter.name, standard, configuration).get()
      #expect(with.transform == without.transform, "\(parameter.name)=\(standard)")
      #expect(with.options == without.options, "\(parameter.name)=\(standard)")
    }
  }

  @Test func `what it calls open is what unsigned requests may use`() throws {
    var closed = try configuration()
    closed.signing = SigningPolicy(mode: .options)
    var presets = try configuration()
    presets.presetsOnly = true
    var some = try configuration()
    some.allow = [.store]
    some.allowsEnlarging = false
    for configuration in [try configuration(), closed, presets, some] {
      for parameter in parameters(configuration) where parameter.name != "url" {
        for name in parameter.names {
          let isRefused =
            switch parse(parameter.name, name, configuration) {
            case .failure(let error): error.status == 403
            case .success: false
            }
          // A parameter beside it may be what is refused.
          guard beside(parameter.name).isEmpty else { continue }
          let isOpen = parameter.open && !parameter.closed.contains(name)
          #expect(isOpen != isRefused, "\(parameter.name)=\(name)")
        }
      }
    }
    // Where no request needs a signature, all are open but those for vouched requests.
    let vouched = ImageParameter.table.filter { $0.access == .vouched }.map(\.name)
    let byDefault = parameters(try configuration())
    let closedByDefault = byDefault.filter { !$0.open }.map(\.name)
    #expect(closedByDefault == vouched && vouched == ["onerror"])
    #expect(byDefault.allSatisfy { $0.closed == ($0.name == "priority" ? ["high"] : []) })
    let store = try #require(parameters(closed).first { $0.name == "store" })
    #expect(store.open && store.closed == ["memory", "disk", "none"])
    #expect(parameters(presets).filter { $0.open }.map(\.name).contains("preset"))
    #expect(parameters(presets).first { $0.name == "w" }?.open == false)
  }

  @Test func `names of the configuration are in it, and no secrets`() throws {
    var configuration = try configuration()
    configuration.operators = [Operator(name: "me", token: "a-secret-token")]
    configuration.sources.bodies = .trusted
    let json = try #require(JSON.bytes(of: description(of: configuration)))
    let text = String(decoding: json, as: UTF8.self)
    #expect(text.contains(#""names":["<b>","thumb"]"#) && text.contains(#""names":["logo"]"#))
    #expect(
      text.contains(#""samples":["https://h/a.png"]"#) && text.contains(#""hasOperators":true"#))
    #expect(text.contains(#""bodies":"trusted""#))
    #expect(!text.contains("a-secret-token"))
  }
}
