// SigningPolicyTests: tests of what a target may ask for, by mode, parameter and signature.

import Core
import TestSupport
import Testing

@testable import Serving

/// A key for tests, and one that no server knows.
let testKey = SigningKey(id: "main", secret: String(repeating: "k", count: 32))
let foreignKey = SigningKey(id: "main", secret: String(repeating: "f", count: 32))

/// Returns a target with its signature.
func signed(
  _ target: String, by key: SigningKey = testKey, path: String? = nil
) -> String {
  let parts = target.split(separator: "?", maxSplits: 1)
  let text = SignedText(path: path ?? String(parts[0]), query: parts[1].utf8)
  return target + "&sig=" + (text.flatMap { URLSigner(keys: [key]).sign($0) } ?? "")
}

@Suite(.onOwnThreads) struct SigningPolicyTests {
  /// A valid use of each parameter. What it needs beside it comes first.
  private static let uses = [
    "preset": "preset=thumb", "scale": "scale=2", "w": "w=10", "h": "h=10", "fit": "fit=cover",
    "position": "position=0.2,0.3", "crop": "crop=0,0,5,5", "rotate": "rotate=90",
    "flip": "flip=h", "trim": "trim=5", "blur": "blur=1", "sharpen": "sharpen=1",
    "radius": "radius=max", "tint": "tint=f00", "grayscale": "grayscale=1",
    "brightness": "brightness=2", "saturation": "saturation=2", "enlarge": "enlarge=1",
    "format": "format=webp", "placeholder": "format=placeholder&placeholder=lqip",
    "quality": "quality=50", "background": "background=fff", "maxbytes": "maxbytes=999",
    "animated": "animated=0", "strip": "strip=0", "limitbytes": "limitbytes=999",
    "frame": "frame=1", "progressive": "progressive=1", "refresh": "refresh=1",
    "cache": "cache=bypass", "store": "store=none", "retry": "retry=1",
    "priority": "priority=high", "detach": "detach=1", "watermark": "watermark=logo",
    "watermark_position": "watermark=logo&watermark_position=top",
    "watermark_scale": "watermark=logo&watermark_scale=0.5",
    "watermark_opacity": "watermark=logo&watermark_opacity=0.5",
    "watermark_repeat": "watermark=logo&watermark_repeat=1", "fallback": "fallback=gone",
    "onerror": "onerror=redirect", "ar": "ar=2", "min-w": "min-w=9", "min-h": "min-h=9",
    "extend": "extend=box", "pad": "pad=1", "orient": "orient=0", "pixelate": "pixelate=9",
    "hue": "hue=9", "sepia": "sepia=1", "contrast": "contrast=2", "gamma": "gamma=2",
    "negate": "negate=1", "q_jpeg": "q_jpeg=9", "q_webp": "q_webp=9", "q_avif": "q_avif=9",
    "q_jxl": "q_jxl=9", "offset": "offset=1,2", "trim_color": "trim_color=fff",
    "trim_equal": "trim_equal=h", "watermark_offset": "watermark=logo&watermark_offset=1,2",
    "limitside": "limitside=9", "swap": "swap=1", "lossless": "lossless=1",
    "chroma": "chroma=444", "colours": "colours=16", "pass": "pass=all",
    "profile": "profile=keep", "watermark_gap": "watermark=logo&watermark_gap=1,2",
    "watermark_density": "watermark=logo&watermark_density=2",
    "flatten": "flatten=1", "download": "download=1",
    "filename": "filename=photo", "maxage": "maxage=60",
  ]

  /// What a client may do to a URL.
  enum Signature: CaseIterable {
    case none, valid, ofNoID, expired, foreign, ofOtherID, altered, ofOtherPath, bareExpiry
  }

  static func rules(
    _ mode: SigningMode, change: (inout ServerConfiguration) -> Void = { _ in }
  ) throws -> RequestRules {
    var configuration = ServerConfiguration()
    configuration.signing = SigningPolicy(mode: mode, keys: [testKey])
    configuration.presets = ["thumb": "w=300&blur=3&store=memory"]
    configuration.watermarks = ["logo": try SourceURL(parsing: "https://h/logo.png")]
    configuration.fallbacks = ["gone": try SourceURL(parsing: "https://h/gone.svg")]
    change(&configuration)
    return RequestRules(configuration)
  }

  static func target(_ text: String, rules: RequestRules) -> RequestTarget {
    RequestTarget(raw: Array(text.utf8), rules: rules)
  }

  /// Returns the error code of a target now; `nil` for an allowed one.
  private func code(_ text: String, rules: RequestRules) -> String? {
    let target = Self.target(text, rules: rules)
    switch target.request {
    case .failure(let error): return error.code
    case .success:
      return target.isExpired(at: .now) ? ImageError.expiredSignature(0).code : nil
    case nil: return "no request"
    }
  }

  private func written(_ target: String, with signature: Signature) -> String {
    let other = target.hasPrefix("/image") ? "/info" : "/image"
    let id = "main."
    return switch signature {
    case .none: target
    case .valid: signed(target + "&exp=\(UnixTime.now.seconds + 1_000)")
    case .ofNoID: signed(target).replacing("sig=" + id, with: "sig=")
    case .expired: signed(target + "&exp=1700000000")
    case .foreign: signed(target, by: foreignKey)
    case .ofOtherID: signed(target).replacing("sig=" + id, with: "sig=next.")
    case .altered: signed(target).replacing("url=https", with: "url=http")
    case .ofOtherPath: signed(target, path: other)
    case .bareExpiry: target + "&exp=\(UnixTime.now.seconds + 1_000)"
    }
  }

  private func expected(
    _ mode: SigningMode, signature: Signature, access: ParameterAccess
  ) -> String? {
    guard mode != .off else { return access == .vouched ? "forbidden_parameter" : nil }
    switch signature {
    case .valid, .ofNoID: return nil
    case .expired: return "expired_signature"
    case .foreign, .ofOtherID, .altered, .ofOtherPath, .bareExpiry: return "invalid_signature"
    case .none where mode == .required: return "invalid_signature"
    case .none: return access == .plain ? nil : "forbidden_parameter"
    }
  }

  @Test(arguments: SigningMode.allCases, Signature.allCases)
  func `each mode decides on each parameter with each kind of signature`(
    mode: SigningMode, signature: Signature
  ) throws {
    // Given
    let rules = try Self.rules(mode)
    for parameter in ImageParameter.table where !["url", "exp", "sig"].contains(parameter.name) {
      // A high priority overtakes other clients, so no client has it by default.
      let isOpen = mode != .off || parameter.name != "priority"
      let access = isOpen ? parameter.access : .vouched
      let use = try #require(
        Self.uses[parameter.name], "a new parameter: add a use of it, \(parameter.name)")
      let places = ["/image?url=https://h/a.jpg&" + use]
      let ofInfo = parameter.name == "placeholder" ? "placeholder=lqip" : use
      let all = places + (parameter.isForInfo ? ["/info?url=https://h/a.jpg&" + ofInfo] : [])
      for target in all {
        // When
        let found = code(written(target, with: signature), rules: rules)
        // Then
        #expect(
          found == expected(mode, signature: signature, access: access),
          "\(mode) \(signature) \(target)")
      }
    }
    for target in ["/image?url=https://h/a.jpg", "/info?url=https://h/a.jpg"] {
      #expect(
        code(written(target, with: signature), rules: rules)
          == expected(mode, signature: signature, access: .plain), "\(target)")
    }
  }

  @Test func `plain parameters are sizes, formats and presets`() {
    let plain = ImageParameter.table.filter { $0.access == .plain }.map(\.name)
    #expect(
      Set(plain) == [
        "url", "preset", "scale", "w", "h", "fit", "position", "format", "placeholder",
        "fallback", "exp", "sig", "download", "filename", "maxage",
      ])
  }

  @Test func `the error names the parameter that needs a signature, also for an alias`()
    throws
  {
    let rules = try Self.rules(.options)
    for (query, name) in [("q=5", "quality"), ("w=3&blur=1&tint=fff", "blur")] {
      guard
        case .failure(let error) = Self.target("/image?url=https://h/a&" + query, rules: rules)
          .request
      else {
        Issue.record("\(query) is allowed")
        continue
      }
      #expect(error == .unsignedParameter(name, key: "signing.mode"))
      #expect(error.parameter == name && error.status == 403)
    }
    #expect(code("/image?url=https://h/a&width=3&dpr=2", rules: rules) == nil)
  }

  @Test func `unsigned requests have the options of server.allow, and presets have theirs`() throws
  {
    let rules = try Self.rules(.options) { $0.allow = [.retry, .detach] }
    let image = "/image?url=https://h/a&"
    for query in ["retry=1&detach=1", "preset=thumb", "preset=thumb&w=20", "cache=only"] {
      #expect(code(image + query, rules: rules) == nil, "\(query)")
    }
    for query in ["refresh=1", "store=memory", "preset=thumb&store=disk", "priority=high"] {
      #expect(code(image + query, rules: rules) == "forbidden_parameter", "\(query)")
      #expect(code(signed(image + query), rules: rules) == nil, "\(query)")
    }
    #expect(Self.target(image + "w=3", rules: rules).rights == [.retry, .detach])
    #expect(Self.target(signed(image + "w=3"), rules: rules).rights == .all)
    #expect(try Self.target(image + "w=3", rules: Self.rules(.off)).rights == .open)
    #expect(try Self.target(image + "w=3", rules: Self.rules(.options)).rights == [])
  }

  @Test func `with presets only, unsigned requests have presets and signed ones everything`() throws
  {
    let image = "/image?url=https://h/a"
    let rules = try Self.rules(.options) {
      $0.presetsOnly = true
      $0.allowsEnlarging = false
    }
    #expect(code(image + "&preset=thumb", rules: rules) == nil)
    #expect(code(image, rules: rules) == "missing_parameter")
    #expect(code(image + "&preset=thumb&w=3", rules: rules) == "forbidden_parameter")
    #expect(code(signed(image + "&w=3&enlarge=1&blur=2"), rules: rules) == nil)
    let off = try Self.rules(.off) { $0.presetsOnly = true }
    #expect(code(signed(image + "&w=3"), rules: off) == "forbidden_parameter")
  }

  @Test func `a preset contains neither exp nor sig`() {
    var configuration = ServerConfiguration()
    configuration.presets = ["a": "w=3&exp=5", "b": "w=3&sig=x", "c": "w=3"]
    #expect(configuration.invalidPresets.map(\.name) == ["a", "b"])
  }

  @Test(arguments: ["0", "-1", "1.5", "abc", "", "253402300800", "99999999999999999999"])
  func `an exp that is no time is refused, signed or not`(value: String) throws {
    let image = "/image?url=https://h/a&exp=\(value)"
    #expect(try code(signed(image), rules: Self.rules(.required)) == "invalid_parameter")
    #expect(try code(image, rules: Self.rules(.off)) == "invalid_parameter")
    #expect(try code(image, rules: Self.rules(.options)) == "invalid_signature")
  }

  @Test func `what no signature can cover is 400 for its own reason`() throws {
    let rules = try Self.rules(.required)
    for query in ["url=%zz", "url=https://h/a&w=%ff", "url=https://h/a&sig=a&sig=b"] {
      #expect(["invalid_url", "invalid_parameter"].contains(code("/image?" + query, rules: rules)))
    }
    let repeated = signed("/image?url=https://h/a&w=1&width=1")
    #expect(code(repeated, rules: rules) == "invalid_parameter")
    #expect(code(signed("/image?url=https://h/a&foo=1"), rules: rules) == "unknown_parameter")
    #expect(code(signed("/image?w=1"), rules: rules) == "missing_parameter")
    #expect(code(signed("/info?url=https://h/a&w=1"), rules: rules) == "unknown_parameter")
  }

  @Test func `a signature enters neither the key nor the source`() throws {
    let rules = try Self.rules(.options)
    let image = "/image?url=https://h/a.jpg&w=30"
    let plain = Self.target(image, rules: rules)
    let later = Self.target(signed(image + "&exp=\(UnixTime.now.seconds + 99)"), rules: rules)
    #expect(plain.key != nil && plain.key == later.key)
    // They differ in who chose the parameters alone, which is no part of the key.
    var vouched = try #require(plain.request).get()
    #expect(vouched.options.isFreeForm)
    vouched.options.isFreeForm = false
    #expect(try vouched == later.request?.get())
    #expect(later.isSigned && !plain.isSigned)
  }

  /// The reference is the parser: a change without a meaning leaves the same request.
  @Test func `no single change of a signed URL that changes its meaning is accepted`() throws {
    let rules = try Self.rules(.required)
    let expiry = UnixTime.now.seconds + 100_000
    let target = signed(
      "/image?url=https%3a%2F%2Fh%2fa.jpg%3fx=1&w=300&blur=2&format=webp&exp=\(expiry)")
    let whole = Self.target(target, rules: rules)
    let request = try #require(try whole.request?.get())
    let bytes = Array(target.utf8)
    var changed: [[UInt8]] = []
    let others = Array("a0Z9%&=?#+./-_ AfFx\u{0}".utf8) + [0x80, 0xff]
    for place in bytes.indices {
      let flips = (0..<8).map { bytes[place] ^ 1 << $0 }
      for byte in others + flips where byte != bytes[place] {
        changed.append(bytes[..<place] + [byte] + bytes[(place + 1)...])
        changed.append(bytes[..<place] + [byte] + bytes[place...])
      }
      changed.append(Array(bytes[..<place] + bytes[(place + 1)...]))
    }
    var accepted = 0
    for raw in changed {
      let target = RequestTarget(raw: raw, rules: rules)
      guard case .success(let other)? = target.request else { continue }
      accepted += 1
      let text = String(decoding: raw, as: UTF8.self)
      #expect(other == request && target.expiry == whole.expiry, "\(text)")
      #expect(target.path == "/image" && target.isSigned, "\(text)")
    }
    // Such as another case of a hexadecimal digit, or an additional `&`.
    #expect(accepted > 5 && accepted < changed.count / 50, "\(accepted) of \(changed.count)")
  }
}
