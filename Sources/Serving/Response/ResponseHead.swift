// ResponseHead: the fields of a response as one block of text, with the positions that vary.

import Core

/// Response fields as they are sent, from the value of `Date` on. The block does not end with a
/// line break.
///
/// The fields that vary between responses of one variant come first, at fixed positions: `Date`,
/// `X-Request-ID`, and on hits `Server-Timing` and `Age`. A prepared block is updated by
/// overwriting a few bytes.
struct ResponseHead {
  /// The name of the first field, which libmicrohttpd writes itself. A `Date` field keeps
  /// libmicrohttpd from adding its own, which takes glibc's time-zone lock.
  static let firstName: StaticString = "Date"

  private static let idName = "\r\nX-Request-ID: "
  private static let timingName = "\r\nServer-Timing: total;dur="
  private static let ageName = "\r\nAge: "
  private static let sharedName = ", s-maxage="
  private static let timingLength = 5

  static let idOffset = HTTPDate.length + idName.utf8.count
  /// The offset of the five characters of a hit's total time.
  static func timingOffset(_ widths: HitFields.Widths) -> Int {
    idOffset + widths.id + timingName.utf8.count
  }
  static func ageOffset(_ widths: HitFields.Widths) -> Int {
    timingOffset(widths) + timingLength + ageName.utf8.count
  }

  /// The reserved capacity in bytes, which suffices for most blocks.
  private static let usualLength = 768

  /// The block so far.
  private(set) var bytes: [UInt8]
  private(set) var maxAgeOffset = 0
  /// The offset of a hit's `s-maxage`; 0 without it.
  private(set) var sharedMaxAgeOffset = 0

  init() { bytes = [] }

  init(date: UnixTime, id: RequestID) {
    self = withUnsafeTemporaryAllocation(of: UInt8.self, capacity: HTTPDate.length) { text in
      guard let start = text.baseAddress else { return ResponseHead() }
      HTTPDate.write(date, into: start)
      return ResponseHead(date: UnsafePointer(start), id: id)
    }
  }

  /// Creates a block with a date of `HTTPDate.length` bytes and a request id.
  init(date: UnsafePointer<UInt8>, id: RequestID) {
    bytes = Array(unsafeUninitializedCapacity: Self.usualLength) { buffer, count in
      guard let start = buffer.baseAddress else { return }
      start.update(from: date, count: HTTPDate.length)
      count = HTTPDate.length
      for byte in Self.idName.utf8 {
        buffer[count] = byte
        count += 1
      }
      id.write(
        into: UnsafeMutableRawBufferPointer(
          rebasing: UnsafeMutableRawBufferPointer(buffer)[count...]))
      count += id.length
    }
  }

  /// Creates a block for a memory hit. Date, id, time, `Age`, `max-age` and the field of the
  /// client's page are written later.
  ///
  /// - Parameters:
  ///   - freshness: freshness of a shared variant; memory holds no private ones.
  ///   - widths: the lengths of the fields that are written later.
  ///   - crossOrigin: the policy that decides whether there is a field of the client's page.
  init(
    hitWith freshness: Freshness, widths: HitFields.Widths, crossOrigin: CrossOrigin
  ) {
    bytes = Array(repeating: UInt8(ascii: " "), count: HTTPDate.length)
    bytes += Array(Self.idName.utf8)
    bytes += Array(repeating: UInt8(ascii: "0"), count: widths.id)
    bytes += Array(Self.timingName.utf8)
    bytes += Array("0.000".utf8)
    bytes += Array(Self.ageName.utf8)
    bytes += Array(repeating: UInt8(ascii: "0"), count: widths.age)
    bytes += crossOrigin.place
    bytes += Array("\r\nCache-Control: public, max-age=".utf8)
    maxAgeOffset = bytes.count
    bytes += Array(repeating: UInt8(ascii: "0"), count: widths.maxAge)
    if widths.sharedMaxAge > 0 {
      bytes += Array(Self.sharedName.utf8)
      sharedMaxAgeOffset = bytes.count
      bytes += Array(repeating: UInt8(ascii: "0"), count: widths.sharedMaxAge)
    }
    appendControlRest(freshness, isExpiring: widths.isExpiring)
  }

  /// The offset of the field of a hit's page, after its line break.
  static func pageOffset(_ widths: HitFields.Widths) -> Int {
    ageOffset(widths) + widths.age + "\r\n".utf8.count
  }

  /// Adds a field. Drops a value with control characters, which could inject other fields.
  mutating func add(_ name: StaticString, value: String) {
    var value = value
    value.withUTF8 { add(name, value: $0) }
  }

  /// Adds a field that was checked when it was made.
  mutating func add(_ field: HeaderField) {
    bytes.append(contentsOf: "\r\n\(field.name): \(field.value)".utf8)
  }

  /// Adds a field. Drops a value with control characters, which could inject other fields.
  private mutating func add(_ name: StaticString, value: UnsafeBufferPointer<UInt8>) {
    guard !value.isEmpty, !value.contains(where: { $0 < 0x20 || $0 == 0x7f }) else { return }
    append("\r\n")
    append(name)
    append(": ")
    bytes.append(contentsOf: value)
  }

  /// Appends a text without control characters, in one copy, unlike `+=` with its bytes.
  mutating func append(_ text: StaticString) {
    bytes.append(
      contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends the digits of a number of 0 or more.
  mutating func append(number: Int) {
    // A text this short does not allocate.
    append(number.description)
  }

  /// Appends a text without control characters.
  mutating func append(_ text: String) {
    var text = text
    text.withUTF8 { bytes.append(contentsOf: $0) }
  }

  /// Appends fields as they are sent.
  mutating func append(_ fields: [UInt8]) { bytes.append(contentsOf: fields) }

  /// Appends milliseconds with three decimals.
  mutating func append(microseconds: Int) {
    append(number: microseconds / 1_000)
    bytes.append(UInt8(ascii: "."))
    for place in [100, 10, 1] { bytes.append(UInt8(ascii: "0") + UInt8(microseconds / place % 10)) }
  }

  /// The fields one by one, in order, without leading blanks in values.
  var fields: [(name: String, value: String)] {
    let text = "\(Self.firstName): " + String(decoding: bytes, as: UTF8.self)
    // By scalars, because CR LF is a single character.
    return text.unicodeScalars.split(separator: "\r\n".unicodeScalars).map { field in
      let name = field.prefix { $0 != ":" }
      return (String(name), String(field.dropFirst(name.count + 1).drop { $0 == " " }))
    }
  }

  /// Writes milliseconds as `d.ddd`. Larger values are written as 9.999, because the field has a
  /// fixed length.
  static func write(microseconds: Int, into place: UnsafeMutablePointer<UInt8>) {
    let value = min(max(microseconds, 0), 9_999)
    let zero = UInt8(ascii: "0")
    place[0] = zero + UInt8(value / 1_000)
    place[2] = zero + UInt8(value / 100 % 10)
    place[3] = zero + UInt8(value / 10 % 10)
    place[4] = zero + UInt8(value % 10)
  }

  static func write(number age: Int, width: Int, into place: UnsafeMutablePointer<UInt8>) {
    var rest = age
    for position in stride(from: width - 1, through: 0, by: -1) {
      place[position] = UInt8(ascii: "0") + UInt8(rest % 10)
      rest /= 10
    }
  }

  /// Returns the number of digits of a non-negative number.
  static func width(of number: Int) -> Int {
    var width = 1
    var rest = number
    while rest >= 10 {
      width += 1
      rest /= 10
    }
    return width
  }
}

extension ResponseHead {
  /// The policy of images, which must not run scripts if they are opened as pages.
  static let contentSecurityPolicy = "default-src 'none'; sandbox"
  /// The same for an SVG that is passed: its own styles, images and fonts, and still no script.
  static let vectorSecurityPolicy =
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; sandbox"

  /// Adds the fields that every image response has for all clients, except `Age` and
  /// `Cache-Control`.
  mutating func add(
    info: VariantInfo, source: SourceURL, cacheStatus: CacheStatus,
    presentation: Presentation = Presentation()
  ) {
    addContent(of: info)
    if info.isDamaged { add("X-Damaged", value: "1") }
    add("Cache-Status", value: cacheStatus.headerValue)
    if let image = info.image {
      add(
        "Content-Disposition",
        value: ContentDisposition.value(source, format: image.format, presentation))
    }
  }

  /// Adds what the fields of an image say of its bytes.
  mutating func addContent(of info: VariantInfo) {
    add("Content-Type", value: info.content.mediaType)
    add(
      "Content-Security-Policy",
      value: info.image?.format == .svg ? Self.vectorSecurityPolicy : Self.contentSecurityPolicy)
    addValidators(of: info)
    add("Accept-Ranges", value: "bytes")
    guard let image = info.image else { return }
    add("Content-DPR", value: Self.decimal(image.density))
    if let size = image.scaledDownFrom { add("X-Scaled-Down", value: size.description) }
    if let quality = image.quality { add("X-Quality", value: "\(quality)") }
    if image.droppedFrames > 0 { add("X-Frames-Dropped", value: "\(image.droppedFrames)") }
  }

  /// Adds `ETag` and `Last-Modified`.
  mutating func addValidators(of info: VariantInfo) {
    info.etag.withUTF8 { add("ETag", value: $0) }
    guard let lastModified = info.lastModified else { return }
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: HTTPDate.length) { text in
      guard let start = text.baseAddress else { return }
      HTTPDate.write(lastModified, into: start)
      add("Last-Modified", value: UnsafeBufferPointer(text))
    }
  }

  /// Adds `Age` and `Cache-Control`. Downstream shared caches keep the image as long as this cache
  /// does, and serve it stale only as the origin allows. Client caches follow
  /// `Freshness.clientMaxAge`.
  ///
  /// - Parameters:
  ///   - isPrivate: whether shared caches must not store the response.
  ///   - expiry: when the request's URL expires, if ever. No cache may keep the response longer.
  mutating func addAge(
    of freshness: Freshness, at now: UnixTime, isPrivate: Bool, until expiry: UnixTime?
  ) {
    let fields = HitFields(of: freshness, at: now, idLength: 0, until: expiry)
    append("\r\nAge: ")
    append(number: fields.age)
    append("\r\nCache-Control: ")
    guard freshness.isStorable else { return append("no-store") }
    append(isPrivate ? "private" : "public")
    append(", max-age=")
    append(number: fields.maxAge)
    if !isPrivate, fields.widths.sharedMaxAge > 0 {
      append(Self.sharedName)
      append(number: fields.sharedMaxAge)
    }
    appendControlRest(freshness, isExpiring: expiry != nil)
  }

  /// Appends the directives after `max-age` and `s-maxage`.
  mutating func appendControlRest(_ freshness: Freshness, isExpiring: Bool) {
    if isExpiring || !freshness.mayBeStale { append(", must-revalidate") }
    if freshness.isImmutable { append(", immutable") }
  }

  /// Adds `Server-Timing` with the phases of a request that has taken `total` microseconds.
  mutating func add(_ timings: Timings, total: Int) {
    append("\r\nServer-Timing: ")
    for stage in Timings.Stage.allCases {
      guard let duration = timings[stage] else { continue }
      append(stage.rawValue)
      append(";dur=")
      append(microseconds: max(Int(duration / .microseconds(1)), 0))
      append(", ")
    }
    append("total;dur=")
    append(microseconds: total)
  }

  /// Adds `Cache-Control` for a response without an age, such as a negatively cached failure.
  /// Lifetimes are in seconds.
  mutating func addCacheControl(lifetime: Int, clientMaxAge: Int, isPrivate: Bool) {
    let shared = clientMaxAge == lifetime || isPrivate ? "" : ", s-maxage=\(lifetime)"
    add(
      "Cache-Control",
      value: "\(isPrivate ? "private" : "public"), max-age=\(clientMaxAge)\(shared)")
  }

  /// Adds the fields that every response has for all clients.
  mutating func addCommon() { add("X-Content-Type-Options", value: "nosniff") }

  /// Formats a density or scale, at least 0.001, with up to three decimals: `2`, `1.5`, `0.333`.
  static func decimal(_ value: Double) -> String {
    let thousandths = max(Int((min(max(value, 0), 1e6) * 1_000).rounded()), 1)
    guard thousandths % 1_000 != 0 else { return "\(thousandths / 1_000)" }
    var fraction = String(thousandths % 1_000 + 1_000).dropFirst()
    while fraction.hasSuffix("0") { fraction.removeLast() }
    return "\(thousandths / 1_000).\(fraction)"
  }
}

/// The current values of `Age`, `max-age` and `s-maxage`, and how much space each field takes. A
/// prepared head has space for fields of fixed lengths.
struct HitFields {
  /// The digits of the three, and the characters of the id, which may be the client's own.
  struct Widths: Equatable {
    let age: Int
    let maxAge: Int
    /// 0 for a head without `s-maxage`.
    let sharedMaxAge: Int
    let id: Int
    /// Whether the URL expires, so that caches may not serve the response stale.
    let isExpiring: Bool
    /// The hints in `Vary` (`HintNeeds.number`). URLs with and without them share variants.
    var hints: UInt8 = 0

    /// The widths of a head that is not updated.
    static let none = Widths(age: 0, maxAge: 0, sharedMaxAge: 0, id: 0, isExpiring: false)
  }

  let age: Int
  let maxAge: Int
  /// 0 for a head without `s-maxage`.
  let sharedMaxAge: Int
  let widths: Widths

  /// Takes the values at `now`, for a response whose id has `idLength` characters.
  init(
    of freshness: Freshness, at now: UnixTime, idLength: Int, until expiry: UnixTime?,
    hints: UInt8 = 0
  ) {
    age = freshness.age(at: now)
    let latest = freshness.latestMaxAge(at: now, until: expiry)
    maxAge = min(freshness.clientMaxAge(atAge: age), latest)
    let isShared = freshness.isOtherForClients
    sharedMaxAge = isShared ? min(freshness.lifetime, latest) : 0
    widths = Widths(
      age: ResponseHead.width(of: age), maxAge: ResponseHead.width(of: maxAge),
      sharedMaxAge: isShared ? ResponseHead.width(of: sharedMaxAge) : 0, id: idLength,
      isExpiring: expiry != nil, hints: hints)
  }
}

extension Freshness {
  /// Returns the highest `max-age` of a response to a URL that expires: the response's age then. It
  /// does not depend on `now`, unless the clock was set.
  func latestMaxAge(at now: UnixTime, until expiry: UnixTime?) -> Int {
    expiry.map { age(at: now) + max($0.seconds - now.seconds, 0) } ?? .max
  }
}
