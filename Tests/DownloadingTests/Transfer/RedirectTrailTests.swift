// RedirectTrailTests: tests of RedirectTrail: the hops that get secrets, at the default ports.

import Core
import TestSupport
import Testing

@testable import Downloading

@Suite(.onOwnThreads) struct RedirectTrailTests {
  private func target(_ url: String) throws -> DownloadTarget {
    try DownloadTarget(try SourceURL(parsing: url), hosts: HostPolicy())
  }

  @Test(arguments: [
    (["http://a/1", "http://a/2"], true), (["http://a/1", "http://A.:80/2"], true),
    (["http://a/1", "http://a:81/2"], false), (["https://a/1", "http://a/2"], false),
    (["http://a/1", "https://a/2"], true), (["http://a/1", "https://a:444/2"], false),
    (["http://a:81/1", "https://a/2"], false), (["https://a/1", "https://a:444/2"], false),
    (["http://a/1", "https://b/2"], true), (["http://a/1", "https://b/2", "http://b/3"], false),
    (["http://a/1", "http://b/2", "http://a:81/3"], false),
    (["http://a/1", "https://b/2", "http://a/3"], true),
    (["http://a/1", "http://b:81/2", "http://a/3", "http://b/4"], false),
  ])
  func `a host's secrets are sent to the first origin reached on it, or its upgrade to HTTPS`(
    urls: [String], areForTheLast: Bool
  ) throws {
    let targets = try urls.map { try target($0) }
    var trail = RedirectTrail(targets[0])
    let told = targets.map { trail.enter($0) }
    #expect(told.first == true)
    #expect(told.last == areForTheLast)
  }

  @Test func `a client's headers are sent only to the requested origin`() throws {
    let trail = RedirectTrail(try target("http://a/1"))
    for (url, isFirst) in [
      ("http://a/2", true), ("https://a/2", false), ("http://a:81/", false), ("http://b/", false),
    ] {
      #expect(trail.isFirst(try target(url)) == isFirst, "\(url)")
    }
  }
}
