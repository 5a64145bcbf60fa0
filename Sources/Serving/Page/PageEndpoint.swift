// PageEndpoint: sends the page for people, its files, and what browsers ask of every server.

import CMicrohttpd
import CPage
import Core

/// `/`: the page on which people try a URL and watch the server. `/page/…`: its style, its scripts
/// and the description of the parameters.
struct PageEndpoint: Endpoint {
  let path: EndpointPath
  let access = EndpointAccess.open

  func operation(for method: Method) -> Operation? { nil }

  /// - Throws: `notFound`.
  func handle(_ context: RequestContext) throws(ImageError) -> Disposition {
    let name = context.name.isEmpty ? PageFiles.index : context.name
    guard let file = context.policy.page?[name] else { throw context.notFound }
    return .page(file)
  }
}

/// `/robots.txt` (RFC 9309) and `/favicon.ico`: routine requests are no errors in the log.
struct UnaskedFileEndpoint: Endpoint {
  let path: EndpointPath
  let access = EndpointAccess.open
  let isRoutine = true
  private let file: PageFile

  /// Crawlers may index images, and nothing else.
  static let robots = UnaskedFileEndpoint(
    "/robots.txt", type: "text/plain; charset=utf-8",
    text: "User-agent: *\nAllow: /image\nDisallow: /\n")
  /// The server has no icon: 204.
  static let icon = UnaskedFileEndpoint("/favicon.ico", type: "image/x-icon", text: "")

  private init(_ path: String, type: StaticString, text: String) {
    self.path = .exact(path)
    file = PageFile(Array(text.utf8), type: type)
  }

  func operation(for method: Method) -> Operation? { nil }

  func handle(_ context: RequestContext) -> Disposition { .page(file) }
}

extension RequestContext {
  /// Responds with a file of the page. Browsers ask each time whether it has changed, because an
  /// update of the server changes all files at once.
  func respond(with file: PageFile) -> MHD_Result {
    let gzip = file.gzip.flatMap { prefersGzip ? $0 : nil }
    let form = gzip ?? file.plain
    let isKnown = handler.isNotModified(etag: form.etag, on: connection)
    let status = isKnown ? 304 : form.bytes.count > 0 ? 200 : 204
    var head = ResponseHead(date: Clock.now(), id: client.requestID)
    head.add("Content-Type", value: file.type.description)
    if gzip != nil, !isKnown { head.add("Content-Encoding", value: "gzip") }
    head.add("Cache-Control", value: "no-cache")
    head.add("ETag", value: form.etag.description)
    head.add("Content-Security-Policy", value: PageFile.contentSecurityPolicy)
    head.add("Referrer-Policy", value: "no-referrer")
    addCommon(to: &head, vary: "Accept-Encoding")
    return respond(status, head: head, body: .memory(form.bytes))
  }
}

/// A file that the server sends. Its bytes are shared by all responses.
struct PageFile: Sendable {
  /// The file in one content coding.
  struct Form: Sendable {
    let bytes: ImageBytes
    /// A strong validator of the bytes.
    let etag: EntityTag

    fileprivate init(_ text: [UInt8]) {
      bytes = text.withUnsafeBytes { ImageBytes(copying: $0) }
      etag = EntityTag("\"\(HMAC.hexSHA256(of: text).prefix(32))\"")
    }
  }

  let type: StaticString
  let plain: Form
  /// `nil`: see `CodedText`.
  let gzip: Form?

  init(_ bytes: [UInt8], type: StaticString) {
    self.type = type
    let text = CodedText(bytes)
    plain = Form(text.plain)
    gzip = text.gzip.map(Form.init)
  }

  /// What the page may load and do: its own files, images and requests to its own server. No text
  /// becomes markup (`trusted-types 'none'`), and no other page may frame it.
  static let contentSecurityPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    + "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    + "require-trusted-types-for 'script'; trusted-types 'none'"
}

struct PageFiles: Sendable {
  /// The name of the file that `/` sends.
  static let index = "index.html"
  /// The name of the description of the parameters, which is made at the start.
  static let parameters = "parameters.json"

  /// The files of the program.
  private static let fixed: [String: PageFile] = {
    var files: [String: PageFile] = [:]
    while case let file = pictor_page_file(files.count), let name = file.name,
      let bytes = file.bytes
    {
      let text = String(cString: name)
      files[text] = PageFile(
        Array(UnsafeBufferPointer(start: bytes, count: file.count)), type: Self.type(of: text))
    }
    return files
  }()

  private let files: [String: PageFile]

  /// Adds the description of the server's parameters to the files of the program.
  init(_ description: PageDescription) {
    // Every description can be encoded: it has no infinite number.
    let json = PageFile(JSON.bytes(of: description) ?? [], type: "application/json")
    files = Self.fixed.merging([Self.parameters: json]) { $1 }
  }

  subscript(name: String) -> PageFile? { files[name] }

  private static func type(of name: String) -> StaticString {
    if name.hasSuffix(".html") { return "text/html; charset=utf-8" }
    if name.hasSuffix(".md") { return "text/plain; charset=utf-8" }
    return name.hasSuffix(".css")
      ? "text/css; charset=utf-8" : "text/javascript; charset=utf-8"
  }
}

/// The content of `/page/parameters.json`. The page makes its controls from it.
struct PageDescription: Encodable {
  /// Of Pictor.
  let version: String
  /// What the listener has: images, figures, or both.
  let listener: Listener
  let hasOperators: Bool
  /// Which requests need a signature.
  let signing: String
  /// Whose files may be sources (`POST /image`): `off`, `trusted` or `all`.
  let bodies: String
  let samples: [String]
  /// Output formats in the order in which `format=auto` prefers them.
  let autoFormats: [String]
  let groups: [Group]

  struct Listener: Encodable {
    let images: Bool
    /// Whether it has the figures of `/stats` and operators' paths.
    let figures: Bool
  }

  struct Group: Encodable {
    let title: String
    let parameters: [Parameter]
  }

  /// A parameter, as its row of the table describes it.
  struct Parameter: Encodable {
    let name: String
    let help: String
    /// The allowed values, as error messages say them.
    let allowed: String
    /// The value that stands for an absent parameter.
    let standard: String?
    /// Single values.
    let names: [String]
    /// The form of other values: `text`, `color`, `point`, `area` or `url`.
    let form: String?
    let numbers: Numbers?
    let unit: String?
    /// Whether unsigned requests may use it.
    let open: Bool
    /// The names that unsigned requests may not use, if they may use others.
    let closed: [String]
  }

  struct Numbers: Encodable {
    let minimum: Double
    /// Absent if only the size of an integer limits the number.
    let maximum: Double?
    /// Whether only whole numbers are allowed.
    let whole: Bool
    /// Whether the minimum itself is not allowed.
    let above: Bool
  }

  init(of audience: Audience, configuration: ServerConfiguration, rules: RequestRules) {
    version = pictorVersion
    listener = Listener(images: audience != .operators, figures: audience != .clients)
    hasOperators = !configuration.operators.isEmpty
    signing = configuration.signing.mode.rawValue
    bodies = rules.bodies.rawValue
    samples = configuration.samples
    autoFormats = configuration.imaging.autoFormats.map(\.mediaType)
    groups = ParameterGroup.allCases.map { group in
      Group(
        title: group.rawValue,
        parameters: ImageParameter.table.filter { $0.group == group }
          .map { Parameter($0, rules: rules) })
    }
  }
}

extension PageDescription.Parameter {
  fileprivate init(_ parameter: ImageParameter, rules: RequestRules) {
    let values = parameter.allowed(rules)
    let isOpen = { parameter.isOpen(value: $0, rules: rules) }
    name = parameter.name
    help = parameter.help
    allowed = values.text
    standard = parameter.standard
    names = values.names
    form = values.form?.rawValue
    numbers = values.numbers.map(PageDescription.Numbers.init)
    unit = values.unit
    let hasOthers = values.names.isEmpty || values.numbers != nil || values.form != nil
    // No value of a table is empty, so an empty one stands for all that have no name.
    let open = values.names.contains(where: isOpen) || hasOthers && isOpen("")
    self.open = open
    closed = open ? values.names.filter { !isOpen($0) } : []
  }
}

extension PageDescription.Numbers {
  /// The largest whole number that JavaScript represents exactly: 2⁵³ − 1.
  private static let largest = (1 << 53) - 1

  init(_ numbers: AllowedValues.Numbers) {
    switch numbers {
    case .whole(let range):
      self.init(
        minimum: Double(range.lowerBound),
        maximum: range.upperBound > Self.largest ? nil : Double(range.upperBound), whole: true,
        above: false)
    case .decimal(let range):
      self.init(
        minimum: range.lowerBound, maximum: range.upperBound, whole: false, above: false)
    case .decimalAbove(let range):
      self.init(minimum: range.lowerBound, maximum: range.upperBound, whole: false, above: true)
    }
  }
}
