// Downloader: fetches images from their origins; the façade of the transfer thread.

import Model
import Platform
import Telemetry

/// Fetches `http` and `https` sources with libcurl: hundreds of transfers on one thread of its own, connections kept
/// and shared (HTTP/2 over TLS), redirects followed hop by hop, each hop's scheme, host and address checked.
///
/// A body ends up in a sealed memory file. What is neither a whole body of acceptable size nor the word that nothing was
/// modified is an `ImageError`: see `load(_:)`. What is often over in a moment is tried once more (`RetryPolicy`), and a
/// host that fails time and again is left alone for a while (`CircuitBreaker`).
public final class Downloader: ImageLoader, DownloadOperations {
  private let configuration: DownloaderConfiguration
  private let mailbox: Mailbox
  private let thread: OwnThread
  private let verifier: BodyVerifier
  private let counters = DownloadCounters()
  private let board = DownloadMonitor()
  private let own = OwnEndpoint()

  /// Starts the transfer thread. Hosts whose certificates are not looked at are warned of.
  ///
  /// - Throws: `ImageError.internal` when curl or the thread cannot be had.
  public init(
    configuration: DownloaderConfiguration = DownloaderConfiguration(), log: Log
  ) throws(ImageError) {
    self.configuration = configuration
    let unverified = configuration.hostRules.filter(\.allowsInvalidCertificates)
    if !unverified.isEmpty {
      let hosts = unverified.map(\.host.description).joined(separator: ", ")
      log.warning("certificates are not verified", ["hosts": .string(hosts)])
    }
    let rules = try TransferRules(configuration, own: own)
    let multi = try MultiHandle(idleConnectionLimit: configuration.idleConnectionLimit)
    let mailbox = Mailbox(waking: multi)
    self.mailbox = mailbox
    do throws(SystemError) {
      let verifier = try BodyVerifier { [mailbox] id, mismatch in
        mailbox.post(.verified(id, mismatch: mismatch))
      }
      self.verifier = verifier
      thread = try OwnThread(name: "pictor-download", rank: .work) { [counters, board] in
        TransferLoop(
          rules: rules, mailbox: mailbox, multi: multi, verifier: verifier, counters: counters,
          board: board, log: log
        ).run()
      }
    } catch {
      throw .internal(detail: "no thread: \(error)")
    }
  }

  deinit { shutDown() }

  /// Refuses this server itself from now on, as `forbiddenSource`: connections to the address and port that it listens on;
  /// `0.0.0.0` and `::` are all addresses of the machine. Redirects are held to it, too.
  public func refuse(ownAddress address: String, port: Int) {
    own.set(address: address, port: port)
  }

  /// Fetches the whole body, or has the origin say that it is still what the validators tell of. Cancelling the calling
  /// task takes it out of the queue or closes its transfer at once. Raising the request's priority moves it up in the
  /// queue.
  ///
  /// - Throws: `forbiddenSource`: scheme, host or address, of the URL or a redirect's. `sourceNotFound`: 404, 410.
  ///   `sourceError`: any other status than 200 and 203, or 304 to validators, with its `Retry-After`. `sourceTooLarge`,
  ///   `sourceIncomplete` (also where the body is not what its origin's digests say), `sourceTimeout`, `sourceUnreachable` (also for an answer that makes no sense, and at once for
  ///   a host that failed time and again), `sourceTLS`, `tooManyRedirects`. `unsupportedFormat`: an empty body, or a
  ///   content coding that is not known here. `overloaded`: the queue is full, the wait for a place too long, or the
  ///   bodies being received too large together. `draining`: after `shutDown`. `cancelled`, `invalidURL`, `internal`.
  public func load(_ request: LoadRequest) async throws(ImageError) -> LoadResult {
    let target: DownloadTarget
    do {
      target = try DownloadTarget(request.url, hosts: configuration.hosts)
    } catch {
      counters.count(.failure(error), bytes: 0, duration: nil)
      throw error
    }
    let id = mailbox.makeID()
    let priority = SharedPriority()
    let present = request.priority?.observe { [mailbox] raised in
      priority.raise(to: raised)
      mailbox.post(.raise(id))
    }
    priority.raise(to: present ?? .normal)
    let result = await withTaskCancellationHandler {
      await Reply.of { reply in
        let load = PendingDownload(
          id: id, target: target, request: request, arrived: ContinuousClock.now,
          priority: priority, reply: reply)
        // A load that the mailbox did not take is answered by nobody else.
        guard mailbox.post(.load(load)) else { return load.answer(.failure(.draining)) }
        // A task cancelled earlier had its handler called before there was anything to cancel.
        if Task.isCancelled { mailbox.post(.cancel(id)) }
      }
    } onCancel: {
      mailbox.post(.cancel(id))
    }
    return try (result ?? .failure(.internal(detail: "a load without an answer"))).get()
  }

  /// Lets no waiting load begin until `resume` (SDWebImageDownloader's `suspended`). Running transfers end, and the wait
  /// for a place is no longer for it: who has waited too long is turned away as ever.
  public func pause() { mailbox.post(.pause) }

  /// Ends a pause.
  public func resume() { mailbox.post(.resume) }

  /// All loads, first come first. The transfer thread notes each step, so a load that came this moment may be missing.
  public func downloads() -> [DownloadStatus] { board.all }

  /// See `DownloadOperations`.
  public func observeDownloads(
    _ observer: @escaping @Sendable (DownloadStatus) -> Void
  ) -> Observation { board.observe(observer) }

  /// Ends all transfers and waits for the thread, which takes milliseconds. Loads not answered yet, and later ones,
  /// fail with `ImageError.draining`. May be called more than once.
  public func shutDown() {
    mailbox.close()
    thread.join()
    verifier.shutDown()
  }

  /// What `/stats` says about downloads.
  public var figures: DownloadFigures { counters.figures(configuration) }
}
