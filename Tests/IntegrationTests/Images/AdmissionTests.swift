// AdmissionTests: an image in unlimited sizes in the real program: disk and size steps.

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) final class AdmissionTests: OriginSuite {
  override init() throws {
    try super.init()
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
}
