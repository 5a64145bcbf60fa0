// AdmissionTests: an image in unlimited sizes in the real program: disk and size steps.

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct AdmissionTests {
  private let folder: TemporaryFolder
  private let origin: Origin

  init() throws {
    folder = try TemporaryFolder()
    origin = try Origin()
    origin.serve(
      "/a.jpg", bytes: try TestImages.jpeg(width: 120, height: 80),
      headers: ["Cache-Control: max-age=6000"])
  }

  private func files(_ kind: String) -> Int {
    TemporaryFolder.files(below: folder.path + "/cache/" + kind).count
  }

  private func get(_ pictor: PictorProcess, _ parameters: String) throws -> HTTPAnswer {
    try pictor.get(origin.target("/a.jpg", adding: parameters))
  }

  @Test func `with second_request an image reaches the disk when it is asked for again`() throws {
    // Given
    let options = [
      "--disk.admission", "second_request", "--presets", "thumb=w=25",
    ]
    var pictor = try PictorProcess(in: folder, options)
    for width in 30..<40 { #expect(try get(pictor, "&w=\(width)").status == 200) }
    #expect(try get(pictor, "&preset=thumb").status == 200)
    #expect(try get(pictor, "&w=30")["cache-status"] == "pictor; hit; detail=memory")
    try blockUntil("the source, the preset and the second request are written") {
      files("s") == 1 && files("v") == 2
    }
    #expect(try pictor.stats().disk.deferred == 10)
    // When
    #expect(try pictor.end() == 0)
    #expect(files("v") == 2)
    pictor = try PictorProcess(in: folder, options)
    // Then a restart costs one rendering of what was asked for once, and no download.
    for target in ["&w=30", "&preset=thumb"] {
      #expect(try get(pictor, target)["cache-status"] == "pictor; hit; detail=disk")
    }
    #expect(try get(pictor, "&w=31")["cache-status"] == "pictor; hit; detail=source")
    #expect(origin.requests(to: "/a.jpg") == 1)
  }

  @Test func `by default every image survives a restart, at most 64 sizes of one source`() throws {
    var pictor = try PictorProcess(in: folder)
    let targets = (1...50).flatMap { ["&w=\($0)", "&h=\($0)"] }
    for target in targets { #expect(try get(pictor, target).status == 200) }
    try blockUntil("the sizes beyond 64 are removed") {
      let stats = try pictor.stats()
      return stats.disk.displaced == 36 && files("v") == 64
    }
    #expect(try pictor.end() == 0)
    pictor = try PictorProcess(in: folder)
    #expect(try get(pictor, "&h=50")["cache-status"] == "pictor; hit; detail=disk")
    #expect(try get(pictor, "&w=1")["cache-status"] == "pictor; hit; detail=source")
    #expect(try pictor.stats().disk.deferred == 0)
  }

  @Test func `with size_steps all sizes of one step are one image`() throws {
    let pictor = try PictorProcess(in: folder, ["--server.size_steps", "20,40"])
    let first = try get(pictor, "&w=21")
    #expect(first.status == 200)
    for target in ["&w=22", "&w=40", "&w=41", "&width=4000"] {
      let answer = try get(pictor, target)
      #expect(answer["cache-status"] == "pictor; hit; detail=memory", "\(target)")
      #expect(answer.body == first.body)
    }
    #expect(try Pixels(decoding: first.body).size.width == 40)
    #expect(try get(pictor, "&w=20")["cache-status"] == "pictor; hit; detail=source")
    let wrong = try PictorProcess(
      in: folder, ["--server.size_steps", "40,20"], isServer: false)
    #expect(try wrong.end(0) != 0)
    #expect(
      wrong.complaints.contains { $0.contains("server.size_steps") && $0.contains("ascending") })
  }
}
