// CollectorConnection: requests to the collector.

import CCurl
import FoundationEssentials
import Glibc
import Model
import Platform
import Requesting

/// Sends requests to one collector, one at a time, on a connection that is kept.
final class CollectorConnection: Sendable {
  private let multi: MultiHandle
  private let request: ServerRequest
  private let timeout: Duration

  /// Creates a connection; nothing is sent.
  ///
  /// - Throws: `SystemError` if curl has no memory.
  init(_ configuration: SpanExporterConfiguration) throws(SystemError) {
    var request = ServerRequest(.post, configuration.endpoint)
    request.fields =
      ["Content-Type: application/json", "Accept: application/json"]
      + configuration.headers.map { "\($0.name): \($0.value)" }
    request.caFile = configuration.caFile
    request.allowsHTTP2 = true
    self.request = request
    timeout = configuration.timeout
    do throws(ImageError) {
      multi = try MultiHandle(idleConnectionLimit: 1)
    } catch {
      throw SystemError(ENOMEM)
    }
  }

  /// Ends the current wait of `post`, from any thread, so that it looks at its limit again.
  func wakeUp() { multi.wakeUp() }

  /// Sends a request and waits for the response. Blocks.
  ///
  /// - Parameter limit: an earlier end of the wait than the time-out; asked again after `wakeUp`.
  func post(
    _ bytes: [UInt8], until limit: () -> ContinuousClock.Instant?
  ) -> CollectorReply {
    var request = request
    request.body = bytes
    let end = ContinuousClock.now + timeout
    do throws(ImageError) {
      let exchange = try ServerExchange(request)
      guard let code = try multi.run(exchange, until: { min(end, limit() ?? end) }) else {
        return .failed("no response in time")
      }
      guard !exchange.isHeadTooLong else { return .failed("too many header fields") }
      guard code == CURLE_OK || exchange.isCut, exchange.status > 0 else {
        return .failed(Curl.text(code))
      }
      return .answered(
        status: exchange.status, retryAfter: exchange.retryAfter,
        rejected: PartialSuccess.rejected(exchange.bytes))
    } catch {
      return .failed("curl failed")
    }
  }
}

/// The part of the collector's response that counts refused spans (`ExportTracePartialSuccess`).
struct PartialSuccess: Decodable {
  private struct Count: Decodable {
    let value: Int

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      // OTLP/JSON writes 64-bit integers as texts, and reads numbers, too.
      let number = try? container.decode(Int.self)
      value = try number ?? Int(container.decode(String.self)) ?? 0
    }
  }

  private struct Inner: Decodable {
    let rejectedSpans: Count?
  }

  private let partialSuccess: Inner?

  /// Returns how many spans a response refuses, at least 0; 0 for any other text.
  static func rejected(_ json: [UInt8]) -> Int {
    let found = try? JSONDecoder().decode(PartialSuccess.self, from: Data(json))
    return max(found?.partialSuccess?.rejectedSpans?.value ?? 0, 0)
  }
}
