// MetricsProgramTests: /metrics of the real program rises by exactly what was asked.

import Core
import FoundationEssentials
import TestSupport
import Testing

@Suite(.onOwnThreads) final class MetricsProgramTests: OriginSuite {
  override init() throws {
    try super.init()
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 60, height: 40))
    origin.serve("/b.jpg", bytes: try TestImages.jpeg(width: 50, height: 40))
    origin.route("/text", to: .ok(Array("no image".utf8)))
  }

  /// What a sample is: its name and its labels.
  private struct Key: Hashable {
    let name: String
    let labels: [String: String]
  }

  /// Returns the counters, and the number of durations of each histogram.
  private func counts(_ pictor: PictorProcess, port: Int? = nil) throws -> [Key: Double] {
    let page = try MetricsPage(HTTPClient(port: port ?? pictor.port).get("/metrics").text)
    var counts: [Key: Double] = [:]
    for family in page.families where family.type != "gauge" {
      for sample in family.samples {
        guard family.type == "counter" || sample.name.hasSuffix("_count") else { continue }
        counts[Key(name: sample.name, labels: sample.labels)] = sample.value
      }
    }
    return counts
  }

  /// Returns by how much counters rose, without those that do not depend on the request alone.
  private func rise(
    of pictor: PictorProcess, during requests: () throws -> Void
  ) throws -> [Key: Double] {
    let before = try counts(pictor)
    try requests()
    let after = try counts(pictor)
    let varying = [
      "pictor_process_cpu_seconds_total", "pictor_log_lines_total",
      "pictor_response_body_bytes_total", "pictor_download_body_bytes_total",
    ]
    #expect(before.keys.allSatisfy { after[$0] != nil })
    #expect(before.allSatisfy { $0.value <= after[$0.key] ?? -1 }, "a counter fell")
    return after.reduce(into: [:]) { result, pair in
      let difference = pair.value - (before[pair.key] ?? 0)
      if difference != 0, !varying.contains(pair.key.name) { result[pair.key] = difference }
    }
  }

  private func image(_ outcome: String, _ tier: String) -> Key {
    Key(name: "pictor_image_requests_total", labels: ["outcome": outcome, "tier": tier])
  }

  private func key(_ name: String, _ labels: [String: String] = [:]) -> Key {
    Key(name: "pictor_" + name, labels: labels)
  }

  @Test func `each request counts once, in its own counters alone`() throws {
    let pictor = try PictorProcess(in: folder, PictorProcess.operated)
    _ = try counts(pictor)
    let hit = key("image_duration_seconds_count", ["path": "memory_hit"])
    let other = key("image_duration_seconds_count", ["path": "other"])
    func lookups(_ tier: String, _ result: String) -> Key {
      key("cache_lookups_total", ["tier": tier, "result": result])
    }
    func responses(_ code: Int) -> Key { key("http_responses_total", ["code": "\(code)"]) }
    // Each page counts as a response itself: that of the one before.
    let page = responses(200)

    // A miss: one download, one job
    let target = origin.target("/a.jpg", adding: "&w=30")
    var etag: String?
    let miss = try rise(of: pictor) { etag = try pictor.get(target)["etag"] }
    #expect(miss[image("miss", "none")] == 1 && miss[other] == 1 && miss[hit] == nil)
    #expect(miss.filter { $0.key.name == "pictor_image_requests_total" }.count == 1)
    #expect(miss[page] == 2 && miss[lookups("memory", "miss")] == 1)
    #expect(miss[key("downloads_total", ["result": "succeeded"])] == 1)
    #expect(miss[key("download_duration_seconds_count")] == 1)
    #expect(miss[key("imaging_jobs_total", ["result": "succeeded"])] == 1)
    #expect(miss[key("imaging_job_duration_seconds_count")] == 1)
    #expect(miss[key("cache_stores_total", ["tier": "memory"])] == 1)
    for stage in ["ttfb", "download", "decode", "transform", "encode"] {
      #expect(
        miss[key("image_stage_duration_seconds_count", ["stage": stage])] == 1, "\(stage)")
    }

    // Hits in memory, once the writes behind the miss have ended
    try pictor.waitFor("both entries are on disk") { $0.disk.stores == 2 }
    let hits = try rise(of: pictor) { for _ in 0..<5 { _ = try pictor.get(target) } }
    #expect(
      hits == [
        image("hit", "memory"): 5, hit: 5, page: 6, lookups("memory", "hit"): 5,
      ])

    // A hit that the client has already
    let known = try #require(etag)
    let notModified = try rise(of: pictor) { () throws in
      #expect(try pictor.connect().get(target, headers: ["If-None-Match": known]).status == 304)
    }
    #expect(
      notModified == [
        image("hit", "memory"): 1, hit: 1, page: 1, responses(304): 1, lookups("memory", "hit"): 1,
      ])

    // Another size: the source is on disk
    let resized = try rise(of: pictor) { () throws in
      #expect(try pictor.get(origin.target("/a.jpg", adding: "&w=55")).status == 200)
    }
    #expect(resized[image("hit", "source")] == 1 && resized[other] == 1 && resized[page] == 2)
    #expect(resized[key("imaging_jobs_total", ["result": "succeeded"])] == 1)
    #expect(resized[key("downloads_total", ["result": "succeeded"])] == nil)

    // Errors: of a parameter, of the origin, of the bytes, of the path
    for (target, status, code) in [
      (origin.target("/a.jpg", adding: "&w=0"), 400, "invalid_parameter"),
      (origin.target("/absent"), 404, "source_not_found"),
      (origin.target("/text"), 415, "unsupported_format"),
    ] {
      let error = try rise(of: pictor) { () throws in
        #expect(try pictor.get(target).status == status)
      }
      #expect(error[image("error", "none")] == 1 && error[responses(status)] == 1)
      #expect(error[key("request_errors_total", ["code": code])] == 1 && error[page] == 1)
      #expect(error[other] == nil && error[hit] == nil)
      #expect(error.filter { $0.key.name == "pictor_request_errors_total" }.count == 1)
    }
    let nowhere = try rise(of: pictor) { () throws in
      #expect(try pictor.get("/nowhere").status == 404)
    }
    #expect(
      nowhere == [
        page: 1, responses(404): 1, key("request_errors_total", ["code": "not_found"]): 1,
      ])

    // A purge: two variants in memory, two and the source on disk. The text is a source, too.
    try pictor.waitFor("all entries are on disk") { $0.disk.stores == 4 }
    let purge = try rise(of: pictor) { () throws in
      let answer = try pictor.operate(
        "DELETE", target: "/admin/cache?url=\(encoded(origin.url("/a.jpg")))")
      #expect(answer.status == 200)
      try pictor.waitFor("the files are removed") { $0.disk.purged == 3 }
    }
    #expect(purge[key("cache_purged_entries_total", ["tier": "memory"])] == 2)
    #expect(purge[key("cache_purged_entries_total", ["tier": "disk"])] == 3)
    #expect(purge.filter { $0.key.name == "pictor_image_requests_total" }.isEmpty)
  }

  @Test func `stale hits and failures of origins are outcomes of their own`() throws {
    let pictor = try PictorProcess(in: folder)
    let bytes = try TestImages.jpeg(width: 30, height: 20)
    origin.route("/s.jpg") { request in
      request.number == 1
        ? .ok(bytes, headers: ["Age: 500", "Cache-Control: max-age=100"])
        : .status(503, headers: ["Retry-After: 3000"])
    }
    let target = origin.target("/s.jpg")
    _ = try pictor.get(target)
    let rise = try rise(of: pictor) { for _ in 0..<4 { _ = try pictor.get(target) } }
    #expect(rise[image("stale_if_error", "none")] == 1)
    #expect(rise[image("stale_hit", "memory")] == 3)
    #expect(rise[image("hit", "memory")] == nil && rise[image("miss", "none")] == nil)
    #expect(rise[key("image_duration_seconds_count", ["path": "memory_hit"])] == 3)
    #expect(try pictor.stats().requests.byOrigin == ["memory": 3, "origin": 1, "stale": 1])
  }
}
