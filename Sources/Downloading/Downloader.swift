// Downloader: fetches pictures from their origins; the façade of the transfer thread.

import Model
import Platform
import Telemetry

/// Fetches `http` and `https` sources with libcurl: hundreds of transfers on one thread of its own, connections kept
/// and shared (HTTP/2 over TLS), redirects followed hop by hop, each hop's scheme, host and address checked.
///
/// A body ends up in a sealed memory file. What is not an answer 200 with a whole body of acceptable size is an
/// `ImageError`: see `load(_:)`.
public final class Downloader: ImageLoader {
  private let configuration: DownloaderConfiguration
  private let mailbox: Mailbox
  private let thread: OwnThread
  private let counters = DownloadCounters()

  /// Starts the transfer thread.
  ///
  /// - Throws: `ImageError.internal` when curl or the thread cannot be had.
  public init(
    configuration: DownloaderConfiguration = DownloaderConfiguration(), log: Log
  ) throws(ImageError) {
    self.configuration = configuration
    let rules = try TransferRules(configuration)
    let multi = try MultiHandle(idleConnectionLimit: configuration.idleConnectionLimit)
    let mailbox = Mailbox(waking: multi)
    self.mailbox = mailbox
    do throws(SystemError) {
      thread = try OwnThread(name: "pictor-download") { [counters] in
        TransferLoop(rules: rules, mailbox: mailbox, multi: multi, counters: counters, log: log)
          .run()
      }
    } catch {
      throw .internal(detail: "no thread: \(error)")
    }
  }

  deinit { shutDown() }

  /// Fetches the whole body. Cancelling the calling task takes it out of the queue or closes its transfer at once.
  ///
  /// - Throws: `forbiddenSource`: scheme, host or address, of the URL or a redirect's. `sourceNotFound`: 404, 410.
  ///   `sourceError`: any other status than 200 and 203. `sourceTooLarge`, `sourceIncomplete`, `sourceTimeout`,
  ///   `sourceUnreachable` (also for an answer that makes no sense), `sourceTLS`, `tooManyRedirects`.
  ///   `unsupportedFormat`: an empty body, or a content coding that was not asked for. `overloaded`: the queue is full,
  ///   the wait for a place too long, or the bodies being received too large together. `draining`: after `shutDown`.
  ///   `cancelled`, `invalidURL`, `internal`.
  public func load(_ url: SourceURL) async throws(ImageError) -> Download {
    let target: Target
    do {
      target = try Target(url, allowedHosts: configuration.allowedHosts)
    } catch {
      counters.count(.failure(error), bytes: 0, duration: nil)
      throw error
    }
    let id = mailbox.makeID()
    let outcome = Lock<Result<Download, ImageError>?>(nil)
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let load = Load(
          id: id, target: target, arrived: ContinuousClock.now, outcome: outcome,
          continuation: continuation)
        // A load that the mailbox did not take is answered by nobody else.
        guard mailbox.post(.load(load)) else { return load.answer(.failure(.draining)) }
        // A task cancelled earlier had its handler called before there was anything to cancel.
        if Task.isCancelled { mailbox.post(.cancel(id)) }
      }
    } onCancel: {
      mailbox.post(.cancel(id))
    }
    let result = outcome.withLock { $0.take() }
    return try (result ?? .failure(.internal(detail: "a load without an answer"))).get()
  }

  /// Ends all transfers and waits for the thread, which takes milliseconds. Loads not answered yet, and later ones,
  /// fail with `ImageError.draining`. May be called more than once.
  public func shutDown() {
    mailbox.close()
    thread.join()
  }

  /// What `/stats` says about downloads.
  public var figures: DownloadFigures { counters.figures(configuration) }
}
