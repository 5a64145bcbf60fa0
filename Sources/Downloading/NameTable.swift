// NameTable: looks names up, each once for all loads, and remembers the answers.

import CCurl
import Core
import Glibc

/// The addresses of a name, or why it has none.
typealias NameAnswer = Result<[IPAddress], NameFailure>

/// Why a name has no addresses. The texts are for operators.
enum NameFailure: Error, Hashable, Sendable {
  /// There is no such name, or it has no address.
  case unknown(String)
  /// The resolver cannot tell now.
  case temporary(String)
  /// The resolver did not answer in time.
  case late
  /// Too many names wait.
  case full
}

/// Shares look-ups between the loads that need the same name, and limits their number. The transfer
/// thread owns it.
///
/// - getaddrinfo(3) cannot be interrupted, so a look-up takes its thread until the resolver
///   answers. Each load waits until a deadline of its own. Further names wait for a thread.
/// - Names of one domain take at most a thirty-second part of the threads and of the queue, so that
///   domains whose servers never answer delay no other domain.
/// - Addresses that have expired serve while they cannot be looked up anew (RFC 8767).
/// - Answers are remembered, failures more briefly. A name whose address is refused is remembered
///   as briefly as one that does not exist (`shorten`), so that its answers take the same time.
struct NameTable {
  typealias ID = DownloadQueue.ID

  /// The limits of a table.
  struct Limits: Sendable {
    /// Maximum number of look-ups at a time. Beside 1,000 names that never answer, a name of
    /// another client waited for over ten seconds with 64, and for two with 512.
    var threads = 2_048
    /// Maximum number of names that wait for a thread.
    var waiting = 2_048
    /// A domain has one part in this many of `threads` and of `waiting`.
    var shares = 32
    /// Maximum number of remembered names.
    var remembered = 4_096
    /// A look-up that takes longer counts as stuck.
    var deadline = Duration.seconds(5)
    /// How long addresses are remembered, regardless of their TTL. 0: not at all, nor failures.
    var lifetime = Duration.seconds(60)
    /// How long a name without an address is remembered, at most `lifetime`.
    var negativeLifetime = Duration.seconds(5)
    /// How long addresses that have expired may still serve.
    var staleTime = Duration.seconds(3_600)
    /// A look-up that takes longer lets expired addresses serve.
    var patience = Duration.seconds(1)
  }

  /// The actions for the caller, in order.
  enum Action: Hashable {
    /// Look the name up on a thread and report the answer to `resolved`.
    case resolve(String)
    /// Pass the answer to a load.
    case answer(ID, NameAnswer)
  }

  private struct LookUp {
    /// The waiting loads with their deadlines.
    var waiters: [ID: ContinuousClock.Instant] = [:]
    /// When a thread took it; `nil` while it waits for one.
    var started: ContinuousClock.Instant?
    let domain: String
  }

  private struct Memory {
    let answer: NameAnswer
    let resolved: ContinuousClock.Instant
    var expires: ContinuousClock.Instant
    /// Whether its addresses were refused: then it is as forgotten as a name without any.
    var isRefused = false
  }

  private let limits: Limits
  private var lookUps: [String: LookUp] = [:]
  /// The names that wait for a thread, in order of arrival.
  private var queue: [String] = []
  /// The number of threads that names of a domain have, and the number of its names that wait.
  private var running: [String: Int] = [:]
  private var queued: [String: Int] = [:]
  /// The name that each load waits for.
  private var names: [ID: String] = [:]
  private var memory: BoundedTable<String, Memory>

  init(_ limits: Limits) {
    self.limits = limits
    memory = BoundedTable(limit: limits.remembered)
  }

  /// The number of names that wait for a thread.
  var waitingCount: Int { queue.count }
  /// The number of look-ups that have a thread.
  var runningCount: Int { lookUps.count - queue.count }
  /// The number of remembered names.
  var rememberedCount: Int { memory.count }

  /// The earliest deadline of a waiting load. Looks through all of them.
  var nextDeadline: ContinuousClock.Instant? {
    lookUps.values.compactMap { $0.waiters.values.min() }.min()
  }

  /// The number of look-ups that have had a thread for longer than they should.
  func stuckCount(now: ContinuousClock.Instant) -> Int {
    lookUps.values.count { isStuck($0, now) }
  }

  private func isStuck(_ lookUp: LookUp, _ now: ContinuousClock.Instant) -> Bool {
    lookUp.started.map { $0 + limits.deadline <= now } ?? false
  }

  /// Looks a name up for a load, which waits for no other name.
  mutating func lookUp(
    _ name: String, for id: ID, until deadline: ContinuousClock.Instant,
    now: ContinuousClock.Instant
  ) -> [Action] {
    if let known = memory[name], known.expires > now { return [.answer(id, known.answer)] }
    let domain = Self.domain(of: name)
    let hasRoom =
      runningCount < limits.threads && running[domain, default: 0] < share(of: limits.threads)
    let hangs = lookUps[name].map { $0.started.map { $0 + limits.patience <= now } ?? true }
    if hangs ?? !hasRoom, let stale = stale(name, now) { return [.answer(id, stale)] }
    if lookUps[name] == nil {
      guard queue.count < limits.waiting, queued[domain, default: 0] < share(of: limits.waiting)
      else { return [.answer(id, .failure(.full))] }
      lookUps[name] = LookUp(domain: domain)
      queue.append(name)
      queued[domain, default: 0] += 1
    }
    lookUps[name]?.waiters[id] = deadline
    names[id] = name
    return startWaiting(now)
  }

  /// Records the answer of a look-up.
  mutating func resolved(
    _ name: String, _ answer: NameAnswer, now: ContinuousClock.Instant
  ) -> [Action] {
    guard let lookUp = lookUps[name], lookUp.started != nil else { return [] }
    lookUps[name] = nil
    subtract(lookUp.domain, from: &running)
    var answer = answer
    if case .failure(.temporary) = answer, let stale = stale(name, now) {
      answer = stale
    } else {
      remember(name, answer, now)
    }
    let ids = lookUp.waiters.keys.sorted()
    for id in ids { names[id] = nil }
    return ids.map { .answer($0, answer) } + startWaiting(now)
  }

  /// Forgets a load that needs no answer any more; ignores others. A look-up that has begun
  /// continues.
  mutating func leave(_ id: ID) {
    guard let name = names.removeValue(forKey: id) else { return }
    lookUps[name]?.waiters[id] = nil
    dropUnneeded(name)
  }

  /// Answers the loads whose deadline has passed.
  mutating func expire(now: ContinuousClock.Instant) -> [Action] {
    var late: [(id: ID, answer: NameAnswer)] = []
    for (name, lookUp) in lookUps {
      let ids = lookUp.waiters.filter { $0.value <= now }.keys
      guard !ids.isEmpty else { continue }
      let stale = stale(name, now)
      late += ids.map { ($0, stale ?? .failure(.late)) }
      for id in ids {
        names[id] = nil
        lookUps[name]?.waiters[id] = nil
      }
      // Others need not wait as long as these have.
      if isStuck(lookUp, now), stale == nil { remember(name, .failure(.late), now) }
      dropUnneeded(name)
    }
    return late.sorted { $0.id < $1.id }.map { .answer($0.id, $0.answer) }
  }

  /// Makes a name whose address was refused be forgotten as soon as one that does not exist.
  mutating func shorten(_ name: String) {
    guard var known = memory[name] else { return }
    known.expires = min(known.expires, known.resolved + negativeLifetime)
    known.isRefused = true
    memory[name] = known
  }

  /// Returns the addresses of a name that have expired lately.
  private func stale(_ name: String, _ now: ContinuousClock.Instant) -> NameAnswer? {
    guard let known = memory[name], case .success = known.answer, !known.isRefused,
      now < known.expires + limits.staleTime
    else { return nil }
    return known.answer
  }

  private var negativeLifetime: Duration { min(limits.negativeLifetime, limits.lifetime) }

  private mutating func remember(
    _ name: String, _ answer: NameAnswer, _ now: ContinuousClock.Instant
  ) {
    let lifetime: Duration =
      switch answer {
      case .success: limits.lifetime
      case .failure(.unknown), .failure(.late): negativeLifetime
      // The next attempt may succeed.
      case .failure(.temporary), .failure(.full): .zero
      }
    guard lifetime > .zero else {
      memory[name] = nil
      return
    }
    memory.setNewest(Memory(answer: answer, resolved: now, expires: now + lifetime), for: name)
  }

  private mutating func startWaiting(_ now: ContinuousClock.Instant) -> [Action] {
    var actions: [Action] = []
    while runningCount < limits.threads,
      let index = queue.firstIndex(where: { name in
        running[Self.domain(of: name), default: 0] < share(of: limits.threads)
      })
    {
      let name = queue.remove(at: index)
      let domain = Self.domain(of: name)
      subtract(domain, from: &queued)
      running[domain, default: 0] += 1
      lookUps[name]?.started = now
      actions.append(.resolve(name))
    }
    return actions
  }

  /// Drops a name that waits for a thread although no load needs it.
  private mutating func dropUnneeded(_ name: String) {
    guard let lookUp = lookUps[name], lookUp.started == nil, lookUp.waiters.isEmpty else { return }
    lookUps[name] = nil
    queue.removeAll { $0 == name }
    subtract(lookUp.domain, from: &queued)
  }

  private func share(of limit: Int) -> Int { max(limit / limits.shares, 1) }

  private func subtract(_ domain: String, from counts: inout [String: Int]) {
    let count = counts[domain, default: 0] - 1
    counts[domain] = count > 0 ? count : nil
  }

  /// Returns the last two labels of a name: the domain that its owner has registered, or a suffix
  /// that more owners share.
  private static func domain(of name: String) -> String {
    name.split(separator: ".").suffix(2).joined(separator: ".")
  }
}

extension NameFailure {
  /// Says that a name could not be resolved, and why.
  func text(of name: String) -> String {
    let reason =
      switch self {
      case .unknown(let reason), .temporary(let reason): reason
      case .late: "the resolver did not answer in time"
      case .full: "too many names wait"
      }
    return "cannot resolve \(name): \(reason)"
  }

  /// The error of a load.
  func error(of name: String) -> ImageError {
    switch self {
    case .unknown, .temporary: .sourceUnreachable(detail: text(of: name))
    case .late: .sourceTimeout(detail: text(of: name), key: "download.connect_timeout")
    case .full: .overloaded(queue: "names", retryAfter: 1)
    }
  }
}

/// The name of the host that a hop connects to: the origin's, or its proxy's.
struct HopName: Hashable, Sendable {
  /// The name for the resolver: in lower case and ASCII, with the trailing dot that the URL has.
  let name: String
  private let port: Int
  /// The host in the two forms in which curl may look for it.
  private let hosts: Set<String>

  /// The name of an origin; `nil` if no resolver has to be asked for it.
  init?(_ target: DownloadTarget) {
    guard target.isNamed else { return nil }
    self.init(
      target.host, isRooted: target.url.host.hasSuffix("."), port: target.url.port)
  }

  /// The name of a proxy; `nil` if no resolver has to be asked for it.
  init?(proxy url: String) {
    guard let parts = curl_url() else { return nil }
    defer { curl_url_cleanup(parts) }
    guard curl_url_set(parts, CURLUPART_URL, url, 0) == CURLUE_OK,
      let host = Self.part(CURLUPART_HOST, of: parts),
      let port = Self.part(CURLUPART_PORT, of: parts).flatMap({ Int($0) })
    else { return nil }
    let normal = HostPattern.normalized(host)
    guard DownloadTarget.isNamed(normal) else { return nil }
    self.init(normal, isRooted: host.hasSuffix("."), port: port)
  }

  private static func part(_ part: CURLUPart, of parts: OpaquePointer) -> String? {
    var text: UnsafeMutablePointer<CChar>?
    guard curl_url_get(parts, part, &text, UInt32(CURLU_DEFAULT_PORT)) == CURLUE_OK, let text else {
      return nil
    }
    defer { curl_free(text) }
    return String(cString: text)
  }

  private init(_ host: String, isRooted: Bool, port: Int) {
    name = isRooted ? host + "." : host
    hosts = [host, name]
    self.port = port
  }

  /// Whether this can be a name (RFC 1035, section 2.3.4; with underscores). Any other text is not
  /// passed to the resolver, and not to curl's table of names, where `*` stands for all hosts.
  var isValid: Bool {
    let labels = name.split(separator: ".", omittingEmptySubsequences: false)
    let isRooted = labels.last?.isEmpty == true
    return name.utf8.count <= 254
      && (isRooted ? labels.dropLast() : labels[...]).allSatisfy { label in
        (1...63).contains(label.utf8.count)
          && label.utf8.allSatisfy { byte in
            switch byte {
            case 0x61...0x7a, 0x30...0x39, 0x2d, 0x5f: true
            default: false
            }
          }
      }
  }

  /// Returns lines for curl's table of names (`CURLOPT_RESOLVE`). curl drops them some time after
  /// the hop, because of the `+`.
  func lines(_ addresses: [IPAddress]) -> [String] {
    let list = addresses.map { address in
      if case .v6 = address { "[\(address)]" } else { "\(address)" }
    }
    return hosts.sorted().map { "+\($0):\(port):\(list.joined(separator: ","))" }
  }
}

/// Looks names up, each on a thread of its own, which ends with the answer. `NameTable` limits
/// their number.
///
/// A stuck thread cannot be ended. It has no reference to the downloader, so a shut-down neither
/// waits for it nor frees what it uses.
final class NameResolver: Sendable {
  /// Returns the addresses of a name. May block.
  typealias Look = @Sendable (String) -> NameAnswer
  typealias Deliver = @Sendable (String, NameAnswer) -> Void

  private let look: Look
  /// Receives the answers; `nil` after the shut-down.
  private let deliver: Lock<Deliver?>

  /// Creates a resolver.
  ///
  /// - Parameters:
  ///   - look: looks up one name, on a thread of its own.
  ///   - deliver: receives each answer, on any thread.
  init(_ look: @escaping Look, deliver: @escaping Deliver) {
    self.look = look
    self.deliver = Lock(deliver)
  }

  /// Starts a look-up.
  func resolve(_ name: String) {
    do throws(SystemError) {
      try OwnThread.start(name: "pictor-name", rank: .work) { [look, deliver] in
        let answer = look(name)
        deliver.withLock { $0 }?(name, answer)
      }
    } catch {
      deliver.withLock { $0 }?(name, .failure(.temporary("no thread: \(error)")))
    }
  }

  /// Delivers no further answers. Does not wait for look-ups.
  func shutDown() { deliver.withLock { $0 = nil } }
}

/// The system's resolver.
enum SystemNames {
  /// Maximum number of addresses of a name that are used.
  private static let limit = 16

  /// Returns the addresses of a name in the order in which they are to be tried (RFC 6724). Blocks
  /// until the resolver answers, without a limit.
  ///
  /// Names whose last label is `invalid` do not exist, and no resolver is asked for them (RFC 6761,
  /// section 6.4).
  static func addresses(of name: String) -> NameAnswer {
    let labels = name.split(separator: ".")
    if labels.last?.lowercased() == "invalid" {
      return .failure(.unknown("invalid is not a domain"))
    }
    var hints = addrinfo()
    hints.ai_family = AF_UNSPEC
    hints.ai_socktype = CInt(SOCK_STREAM.rawValue)
    var list: UnsafeMutablePointer<addrinfo>?
    let status = getaddrinfo(name, nil, &hints, &list)
    guard status == 0 else { return .failure(failure(of: status, errno: errno)) }
    defer { freeaddrinfo(list) }
    var addresses: [IPAddress] = []
    var next = list
    while let entry = next?.pointee, addresses.count < limit {
      if let address = entry.ai_addr.flatMap({
        IPAddress(UnsafeRawPointer($0), length: Int(entry.ai_addrlen))
      }), !addresses.contains(address) {
        addresses.append(address)
      }
      next = entry.ai_next
    }
    return addresses.isEmpty ? .failure(.unknown("no addresses")) : .success(addresses)
  }

  /// Returns what a status of getaddrinfo(3) other than 0 says about a name.
  ///
  /// - Parameters:
  ///   - status: `EAI_…`.
  ///   - number: `errno` after the call; counts for `EAI_SYSTEM` alone.
  static func failure(of status: CInt, errno number: CInt) -> NameFailure {
    switch status {
    // -5 and -9: no address, or none of these families; GNU extensions (getaddrinfo(3)).
    case EAI_NONAME, -5, -9: .unknown(String(cString: gai_strerror(status)))
    case EAI_SYSTEM: .temporary(SystemError(number).description)
    default: .temporary(String(cString: gai_strerror(status)))
    }
  }
}
