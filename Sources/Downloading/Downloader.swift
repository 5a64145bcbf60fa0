// Downloader: fetches images from their origins; the façade of the transfer thread.

import Core
import Requesting

/// Fetches `http`, `https` and `s3` sources with libcurl. One thread runs hundreds of transfers and
/// reuses connections (HTTP/2 over TLS).
///
/// - Redirects are followed hop by hop; each hop's scheme, host and address are checked.
/// - A complete body is returned in a sealed memory file; everything else except 304 is an
///   `ImageError`.
/// - Transient failures are retried (`RetryPolicy`).
/// - Hosts that fail repeatedly are not asked for a while (`CircuitBreaker`).
public final class Downloader: ImageLoader, DownloadOperations {
  private let current: Lock<DownloaderConfiguration>
  private var configuration: DownloaderConfiguration { current.withLock { $0 } }
  private let mailbox: Mailbox
  private let thread: OwnThread
  private let digesting = BlockingThreads(name: "pictor-digest", threads: 1)
  private let resolver: NameResolver
  private let counters = DownloadCounters()
  private let board = DownloadMonitor()
  private let own = OwnEndpoint()

  /// Starts the transfer thread. Logs a warning for hosts whose certificates are not verified.
  ///
  /// - Parameter bodies: the memory for bodies, from their first byte to their last use; `nil`:
  ///   what `maximumBytesInFlight` allows.
  /// - Throws: `ImageError.internal` if curl or the thread cannot be created.
  public init(
    configuration: DownloaderConfiguration = DownloaderConfiguration(),
    bodies: ByteBudget? = nil, log: Log
  ) throws(ImageError) {
    let bodies = bodies ?? ByteBudget(limit: configuration.maximumBytesInFlight)
    current = Lock(configuration)
    configuration.warnOfUnverifiedHosts(log)
    let rules = try TransferRules(configuration, own: own)
    let multi = try MultiHandle(idleConnectionLimit: configuration.idleConnectionLimit)
    let mailbox = Mailbox(waking: multi)
    self.mailbox = mailbox
    bodies.observeReturns { [weak mailbox] in mailbox?.post { $0.room.grant() } }
    let resolver = NameResolver(configuration.lookUp) { [mailbox] name, answer in
      mailbox.post { $0.resolved(name, answer) }
    }
    self.resolver = resolver
    do throws(SystemError) {
      // Now, so that no verification lacks a thread.
      try digesting.start()
      thread = try OwnThread(name: "pictor-download", rank: .work) {
        [digesting, counters, board] in
        TransferLoop(
          rules: rules, mailbox: mailbox, multi: multi, resolver: resolver, digesting: digesting,
          counters: counters, board: board, bodies: bodies, log: log
        ).run()
      }
    } catch {
      throw .internal(detail: "no thread: \(error)")
    }
  }

  deinit { shutDown() }

  /// Refuses this server itself from now on, as `forbiddenSource`: connections to the address and
  /// port that it listens on; `0.0.0.0` and `::` are all addresses of the machine. Redirects are
  /// held to it, too.
  public func refuse(own addresses: [ListenAddress]) { own.set(addresses) }

  /// Fetches the whole body, or has the origin say that it is still what the validators tell of.
  /// Cancelling the calling task takes it out of the queue or closes its transfer at once. Raising
  /// the request's priority moves it up in the queue.
  ///
  /// - Throws:
  ///   - `forbiddenSource`: scheme, host or address of the URL or a redirect are not allowed.
  ///   - `sourceNotFound`: status 404 or 410.
  ///   - `sourceError`: any status other than 200 and 203, or 304 to validators, with its
  ///     `Retry-After`.
  ///   - `sourceTooLarge`, `sourceTimeout`, `sourceTLS`, `tooManyRedirects`.
  ///   - `sourceIncomplete`: the body is truncated or does not match its digests.
  ///   - `sourceUnreachable`: no connection, an invalid response, or an open circuit breaker.
  ///   - `unsupportedFormat`: an empty body or an unknown content coding.
  ///   - `overloaded`: the queue is full, the wait in the queue took too long, or the bodies being
  ///     received exceed their total limit.
  ///   - `draining`: after `shutDown`.
  ///   - `cancelled`, `invalidURL`, `internal`.
  public func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult {
    let target: DownloadTarget
    let configuration = configuration
    do {
      let isRedirect = configuration.dryRun?.location() != nil
      target = try DownloadTarget.of(
        request.url, hosts: isRedirect ? HostPolicy() : configuration.hosts,
        rules: configuration.hostRules)
    } catch {
      counters.count(.failure(error), bytes: 0, duration: nil)
      throw error
    }
    let id = mailbox.makeID()
    let priority = SharedPriority()
    let present = request.priority?.observe { [mailbox] raised in
      priority.raise(to: raised)
      mailbox.post { $0.raise(id) }
    }
    priority.raise(to: present ?? .normal)
    let clients = request.priority?.observeClients { [mailbox] client in
      priority.add([client])
      mailbox.post { $0.apply($0.queue.join(id, client: client)) }
    }
    priority.add(clients ?? [.unlimited])
    let result = await withTaskCancellationHandler {
      await Reply.of { reply in
        let load = PendingDownload(
          id: id, target: target, request: request, arrived: ContinuousClock.now,
          priority: priority, reply: reply)
        // The mailbox is closed, so the load is answered here.
        guard mailbox.post({ $0.add(load) }) else { return load.answer(.failure(.draining)) }
        // For a task that was cancelled before, the handler ran before the load was posted.
        if Task.isCancelled { mailbox.post { $0.finish(id, with: .failure(.cancelled)) } }
      }
    } onCancel: {
      mailbox.post { $0.finish(id, with: .failure(.cancelled)) }
    }
    return try (result ?? .failure(.internal(detail: "a load without a result"))).get()
  }

  /// Returns what would happen to a load of `url` now. The transfer thread answers, between two
  /// transfers, when the name is looked up as for a load.
  public func outlook(for url: SourceURL) async -> LoadOutlook? {
    var refused = LoadOutlook()
    do throws(ImageError) {
      let configuration = configuration
      let target = try DownloadTarget.of(
        url, hosts: configuration.hosts, rules: configuration.hostRules)
      let outlook = await Reply.of { reply in
        let id = mailbox.makeID()
        guard mailbox.post({ $0.inspect(target, id: id, reply: reply) }) else {
          return reply.give(nil)
        }
      }
      if let outlook = outlook ?? nil { return outlook }
      refused.error = .draining
    } catch {
      refused.error = error
    }
    return refused
  }

  /// Applies the keys `download.…`, host rules and the proxy to loads that start from now on. What
  /// is shared stays.
  public func apply(_ wanted: DownloaderConfiguration) {
    let next = current.withLock { running in
      running.settings = wanted.settings
      running.allowedNetworks = wanted.allowedNetworks
      running.hosts = wanted.hosts
      running.hostRules = wanted.hostRules
      running.proxy = wanted.proxy
      running.traced = wanted.traced
      return running
    }
    mailbox.post { $0.apply(next) }
  }

  /// Starts no waiting download until `resume` (SDWebImageDownloader's `suspended`). Running
  /// transfers continue, and waiting downloads still expire.
  public func pause() { mailbox.post { $0.queue.pause() } }

  /// Ends a pause.
  public func resume() { mailbox.post { $0.apply($0.queue.resume()) } }

  /// Returns all downloads, in order of arrival. The transfer thread updates the list, so a
  /// download that was just added may be missing.
  public func downloads() -> [DownloadStatus] { board.all }

  /// See `DownloadOperations`.
  public func observeDownloads(
    _ observer: @escaping @Sendable (DownloadStatus) -> Void
  ) -> Observation { board.observe(observer) }

  /// Ends all transfers and waits for the thread, which takes milliseconds. Unanswered and later
  /// downloads fail with `ImageError.draining`. May be called more than once.
  public func shutDown() {
    resolver.shutDown()
    mailbox.close()
    thread.join()
    digesting.stop()
    // What is being verified ends soon.
    _ = digesting.finish(within: .seconds(60))
  }

  /// The download figures of `/stats`.
  public var figures: Figures { counters.figures(configuration) }
}

/// The settings of the downloader, with what the program checks and resolves, and with limits that
/// operators cannot set. The defaults are safe.
public struct DownloaderConfiguration: PartConfiguration {
  /// The keys `download.…`.
  public var settings: DownloadSettings
  /// Maximum total size of the bodies being received, in bytes.
  public var maximumBytesInFlight: Int
  /// The minimum rate of a transfer, in bytes per second.
  public var lowSpeedLimit = 128
  /// Maximum size of a response's header in bytes, including interim responses and trailers.
  public var maximumHeaderBytes = 64 << 10
  /// When a host counts as silent or slow.
  package var pace = TransferPace.Limits()
  /// Maximum number of stalled transfers, silent or slow, that do not count against `limit`. Beyond
  /// it, the slowest one ends when another download waits for its place.
  public var silentLimit = 256
  /// Networks that are allowed although they are not public.
  public var allowedNetworks: [CIDR] = []
  /// Hosts, ports and paths that downloads may use, including redirects.
  public var hosts = HostPolicy()
  /// Sources whose origins get the trace of a load (`tracing.propagate`); empty: none.
  public var traced: [SourcePattern] = []
  /// Receives a span for each request of a sampled load; `nil`: none is recorded.
  public var spans: (any SpanSink)?
  /// Settings for particular hosts, with their secrets; the first matching rule applies.
  public var hostRules: [HostRule] = []
  /// URL of the HTTP proxy for hosts without a rule of their own, `http://host:port`, optionally
  /// with user and password. `nil`: no proxy; environment variables are ignored.
  public var proxy: String?
  /// What this server is called in `CDN-Loop` (RFC 8586) and `Via`: a token. Empty: neither is
  /// sent.
  public var serverID = ""
  /// The `User-Agent` header.
  public var userAgent = "Pictor"
  /// The `Accept` field: SDWebImage's, with AVIF.
  public var accept = "image/avif,image/webp,image/*;q=0.8"
  /// Maximum number of idle connections kept for reuse, at least 1.
  public var idleConnectionLimit = 64
  /// How long an idle connection may be reused. Servers commonly close theirs after one or two
  /// minutes.
  public var idleConnectionLifetime: Duration = .seconds(60)
  /// The limits of look-ups. `connectTimeout` is their deadline.
  var names = NameTable.Limits()
  /// Asks the resolver for a name, on a thread of its own; replaced by tests.
  var lookUp: NameResolver.Look = SystemNames.addresses
  /// Makes loads report their connections instead of making them. `nil` except in the self-test.
  var dryRun: DryRun?

  /// Creates the configuration of a downloader; the plan decides what `settings` leave open.
  public init(
    _ settings: DownloadSettings = DownloadSettings(), plan: MemoryPlan = .unlimited()
  ) {
    self.settings = settings
    hosts.ports = settings.ports.compactMap(PortRange.init)
    maximumBytesInFlight = plan.bodies(ofAtMost: settings.maximumBytes)
  }

  /// Transfers of one client at once while others wait, at least 1.
  var share: Int {
    settings.limitPerClient > 0 ? settings.limitPerClient : max(settings.limit / 4, 1)
  }

  /// How many downloads run and wait.
  var queueLimits: DownloadQueue.Limits {
    DownloadQueue.Limits(
      total: max(settings.limit, 1), perHost: max(settings.limitPerHost, 1), share: share,
      silent: silentLimit, waiting: settings.queueLimit,
      timeout: settings.queueTimeout ?? settings.timeout)
  }

  /// Logs a warning for hosts whose certificates are not verified.
  func warnOfUnverifiedHosts(_ log: Log) {
    let unverified = hostRules.filter(\.allowsInvalidCertificates)
    guard !unverified.isEmpty else { return }
    let hosts = unverified.map(\.host.description).joined(separator: ", ")
    log.warning("certificates are not verified", fields: ["hosts": .string(hosts)])
  }

  /// Returns the trace that the origin of a hop is told, if it may know one. A pattern has to cover
  /// each way of reading the path, as on the allow list.
  func tells(_ trace: TraceContext?, to target: DownloadTarget) -> TraceContext? {
    guard let trace, !traced.isEmpty else { return nil }
    let path = PathReading(target.url.path)
    let isTraced = traced.contains {
      $0.covers(host: target.host, port: target.url.port, path: path)
    }
    return isTraced ? trace : nil
  }
}
