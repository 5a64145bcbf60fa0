// LifeTests: the server's life: orderly stops, reloading, limits, what survives a restart.

import Core
import FoundationEssentials
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class LifeTests: OriginSuite {
  @Test func `when the server is killed, its workers end, also one that cannot notice`() throws {
    // Given: two workers, one of them stopped, so that it does not see its connection close
    let pictor = try PictorProcess(in: folder, ["--imaging.workers", "2"])
    let workers = try pictor.preparedWorkers(2)
    kill(workers[0], SIGSTOP)
    // When
    #expect(try pictor.end(SIGKILL) == -SIGKILL)
    // Then: what is left of a process is a zombie at most, which its new parent reaps
    for worker in workers {
      try blockUntil("worker \(worker) ends") {
        let state = contents(of: "/proc/\(worker)/stat").split(separator: ")").last?.first {
          $0 != " "
        }
        return state == nil || state == "Z" || state == "X"
      }
    }
  }

  @Test func `variants and sources survive a restart`() throws {
    origin.serve("/a.jpg", bytes: try TestImages.jpeg(width: 300, height: 200))
    var pictor = try PictorProcess(in: folder)
    let before = try pictor.get(origin.target("/a.jpg", adding: "&w=100"))
    #expect(try pictor.end() == 0)

    pictor = try PictorProcess(in: folder)
    let after = try pictor.get(origin.target("/a.jpg", adding: "&w=100"))
    #expect(after["cache-status"] == "pictor; hit; detail=disk")
    #expect(after.body == before.body)
    #expect(after["etag"] == before["etag"])
    let other = try pictor.get(origin.target("/a.jpg", adding: "&w=50"))
    #expect(other["cache-status"] == "pictor; hit; detail=source")
    #expect(origin.requests(to: "/a.jpg") == 1)
    let memory = try pictor.get(origin.target("/a.jpg", adding: "&w=100"))
    #expect(memory["cache-status"] == "pictor; hit; detail=memory")
  }

  @Test func `each detached request counts against the limit until its work ends`() throws {
    // Given a server with a limit of five requests, and an origin that waits
    let pictor = try PictorProcess(in: folder, ["--server.active_requests", "5"])
    let gate = Gate()
    origin.route("/a.png", to: .hold(gate, then: .ok(try TestImages.png(width: 8, height: 8))))
    // When many clients request different images and disconnect
    for number in 0..<20 {
      let client = try pictor.ask(origin.target("/a.png?\(number)", adding: "&detach=1"))
      try pictor.waitFor("it is let in or refused") {
        $0.flights.variants >= min(number + 1, 5) && $0.requests.active >= 0
      }
      client.close()
      try pictor.waitFor("it has gone") { $0.requests.connections <= 1 }
    }
    // Then
    #expect(try pictor.stats().flights.variants == 5)
    #expect(try pictor.get(origin.target("/other.png")).status == 503)
    // When the work ends
    gate.open()
    try pictor.waitFor("the places are free") { $0.flights.variants == 0 }
    #expect(try pictor.get(origin.target("/a.png?0")).status == 200)
  }

  @Test(arguments: [SIGTERM, SIGINT])
  func `a stop finishes running requests and exits 0`(signal: CInt) throws {
    let pictor = try PictorProcess(in: folder)
    let gate = Gate()
    origin.route("/a.jpg", to: .hold(gate, then: .ok(try TestImages.jpeg(width: 30, height: 20))))
    let idle = try pictor.connect()
    #expect(try idle.get("/stats").status == 200)
    let client = try pictor.ask(origin.target("/a.jpg"))
    try pictor.waitFor("the download runs") { $0.downloads.running == 1 }
    kill(pictor.id, signal)
    // Over the existing connection: the server drains and says so.
    var draining = try idle.get("/stats")
    try blockUntil("it drains") {
      if draining.status == 200 { draining = try idle.get("/stats") }
      return draining.status != 200
    }
    #expect(draining.status == 503 && draining.text.contains("draining"))
    gate.open()
    let answer = try client.readAnswer()
    #expect(answer.status == 200)
    #expect(try pictor.end(0) == 0)
    #expect(pictor.workers().isEmpty)
  }

  @Test func `after SIGTERM the server drains until the delay ends or a second signal arrives`()
    throws
  {
    origin.route("/a.jpg", to: .ok(try TestImages.jpeg(width: 30, height: 20)))
    for (delay, isHurried) in [("1h", true), ("300ms", false)] {
      // Given
      let pictor = try PictorProcess(in: folder, ["--server.shutdown_delay", delay])
      // When
      kill(pictor.id, SIGTERM)
      var stats = try? pictor.get("/stats")
      for _ in 0..<2_000 where stats?.status == 200 {
        usleep(5_000)
        stats = try? pictor.get("/stats")
      }
      // Then
      if isHurried {
        #expect(stats?.status == 503)
        // Over new connections.
        #expect(try pictor.get(origin.target("/a.jpg")).status == 200)
        #expect(try pictor.get("/stats").text.contains("draining"))
        #expect(try pictor.get("/readyz").status == 503)
        #expect(try pictor.get("/livez").status == 200)
        kill(pictor.id, SIGTERM)
      }
      #expect(try pictor.end(0) == 0)
    }
  }

  @Test func `other signals lose no request`() throws {
    let pictor = try PictorProcess(in: folder)
    let gate = Gate()
    origin.route("/a.jpg", to: .hold(gate, then: .ok(try TestImages.jpeg(width: 30, height: 20))))
    let client = try pictor.ask(origin.target("/a.jpg"))
    try pictor.waitFor("the download runs") { $0.downloads.running == 1 }
    for signal in [SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE, SIGALRM, SIGVTALRM, SIGPROF, SIGIO, SIGCHLD] {
      kill(pictor.id, signal)
      #expect(try pictor.get("/stats").status == 200, "\(signal)")
    }
    gate.open()
    #expect(try client.readAnswer().status == 200)
    #expect(try pictor.end() == 0)
  }
}
