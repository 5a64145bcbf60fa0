// Support: a downloader for loopback, and loads for tests.

import Core
import Downloading
import Glibc
import TestSupport
import Testing

/// A downloader that may use loopback, with time-outs for a sanitized build on a busy machine.
/// Retries and circuit breakers are off unless a test turns them on.
func makeDownloader(
  bodies: ByteBudget? = nil, _ change: (inout DownloaderConfiguration) -> Void = { _ in }
) throws -> Downloader {
  var configuration = DownloaderConfiguration()
  configuration.allowedNetworks = try ["127.0.0.0/8", "::1/128"].map { try #require(CIDR($0)) }
  configuration.timeout = .seconds(60)
  configuration.firstByteTimeout = .seconds(60)
  configuration.retries = 0
  configuration.breakerThreshold = 0
  change(&configuration)
  return try Downloader(configuration: configuration, bodies: bodies, log: .silent)
}

extension ImageLoader {
  /// Loads without validators. A response without a body is an issue.
  func load(_ url: SourceURL) async throws(ImageError) -> Download {
    guard case .fetched(let download) = try await load(LoadRequest(url: url)) else {
      Issue.record("\(url.text) is unexpectedly not modified")
      throw .internal(detail: "not modified")
    }
    return download
  }

  /// Returns the origin's 304 response. A body is an issue.
  func revalidate(_ url: String, with validators: Validators?) async throws -> OriginResponse? {
    let request = LoadRequest(url: try SourceURL(parsing: url), validators: validators)
    switch try await load(request) {
    case .notModified(let answer, _): return answer
    case .fetched:
      Issue.record("\(url) was fetched")
      return nil
    }
  }
}

/// Validators as an origin sent them.
func validators(etag: String? = nil, lastModified: String? = nil) throws -> Validators {
  var answer = OriginResponse(status: 200)
  answer.etag = etag
  answer.lastModified = lastModified
  return try #require(Validators(answer))
}

extension Result {
  /// The failure of a result.
  var failure: Failure? {
    if case .failure(let error) = self { error } else { nil }
  }
}

extension Downloader {
  /// Loads a URL given as text.
  func load(_ text: String, priority: LoadPriority? = nil) async throws -> Download {
    let request = LoadRequest(
      url: try SourceURL(parsing: text), priority: priority.map { TestPriority($0) })
    guard case .fetched(let download) = try await load(request) else {
      throw ImageError.internal(detail: "an unexpected 304")
    }
    return download
  }

  /// Returns the failure of a load. A success is an issue.
  func failure(of text: String) async -> ImageError? {
    do {
      _ = try await load(text)
      Issue.record("\(text) was loaded")
      return nil
    } catch {
      return error as? ImageError
    }
  }
}
