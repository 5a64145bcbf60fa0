// RequestCacheControl: the caching and priority directives of a request.

import Core
import Glibc

/// The `Cache-Control` (RFC 9111, section 5.2.1) and `Priority` (RFC 9218) fields of a request.
struct RequestCacheControl: Equatable {
  /// `no-cache`.
  var noCache = false
  /// `no-store`.
  var noStore = false
  /// `only-if-cached`.
  var onlyIfCached = false
  /// `max-age`, `max-stale`, `min-fresh`.
  var age = AgeDemands()
  /// Derived from the urgency, 0 to 7; 3 is normal.
  var priority: LoadPriority?

  init() {}

  /// Whether the request has a `Cache-Control` field. Called for each hit, so it does not parse.
  static func arePresent(on connection: OpaquePointer) -> Bool {
    RequestHandler.field("Cache-Control", on: connection) != nil
  }

  /// Parses the fields of the current request. Several fields form one list (RFC 9110, section
  /// 5.3).
  init(on connection: OpaquePointer) {
    RequestHandler.forEachField(on: connection) { name, value in
      if strcasecmp(name, "Cache-Control") == 0 {
        read(cacheControl: String(cString: value))
      } else if strcasecmp(name, "Priority") == 0 {
        read(priority: String(cString: value))
      }
    }
  }

  /// Adds directives; ignores unknown and invalid ones.
  mutating func read(cacheControl text: String) {
    for directive in CacheDirectives(text) {
      let seconds = directive.seconds
      switch directive.name {
      case "no-cache": noCache = true
      case "no-store": noStore = true
      case "only-if-cached": onlyIfCached = true
      case "max-age": age.maxAge = seconds ?? age.maxAge
      case "min-fresh": age.minFresh = seconds ?? age.minFresh
      case "max-stale": age.maxStale = directive.argument == nil ? .max : seconds ?? age.maxStale
      default: break
      }
    }
  }

  /// Adds the urgency of a structured field such as `u=1, i`.
  mutating func read(priority text: String) {
    for item in text.split(separator: ",") {
      let parts = item.split(separator: "=", maxSplits: 1).map {
        $0.trimming { " \t\"".contains($0) }
      }
      guard parts.count == 2, parts[0] == "u", let urgency = Int(parts[1]),
        (0...7).contains(urgency)
      else { continue }
      priority = urgency < 3 ? .high : urgency == 3 ? .normal : .low
    }
  }

  /// Adds the directives to the options of the target, which take precedence. Those beyond `rights`
  /// are ignored, as RFC 9111 (section 5.2.1) and RFC 9218 (section 10) allow.
  func apply(to options: inout LoadOptions, rights: Set<ClientOption>) {
    if noStore, rights.contains(.store) { options.store = [] }
    if options.priority == .normal, let priority,
      priority <= .normal || rights.contains(.priority)
    {
      options.priority = priority
    }
    guard options.cache == .normal else { return }
    options.age.maxStale = age.maxStale
    if onlyIfCached { options.cache = .only }
    guard rights.contains(.refresh) else { return }
    options.age.maxAge = age.maxAge
    options.age.minFresh = age.minFresh
    if noCache, !onlyIfCached { options.cache = .refresh }
  }
}
