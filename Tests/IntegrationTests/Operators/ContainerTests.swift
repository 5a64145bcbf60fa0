// ContainerTests: the server with a read-only root and no capabilities (config/compose.yaml).

import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads) struct ContainerTests {
  /// Makes every folder but `$0` read-only, then starts the rest as an ordinary user.
  private static let script = """
    mount --make-rprivate / && mount --bind "$0" "$0" && mount -o remount,ro,bind / && \
    exec setpriv --reuid=65534 --regid=65534 --clear-groups --bounding-set=-all --inh-caps=-all \
    --no-new-privs "$@"
    """

  private static func wrapper(writable folder: String) -> [String] {
    ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", script, folder]
  }

  /// Whether this machine lets root make a namespace of mounts with a read-only root.
  private static let isPossible: Bool = {
    guard OtherUser.canRun, let folder = try? TemporaryFolder() else { return false }
    let program = try? ChildProcess(wrapper(writable: folder.path) + ["/bin/true"])
    return program?.wait() == 0
  }()

  @Test(
    .enabled(
      if: isPossible,
      "needs root, a kernel that lets it remount the root, and a toolchain that others may read"))
  func `with a read-only root and no capabilities, images are served and kept on disk`() throws {
    // Given
    let folder = try TemporaryFolder()
    let programs = try OtherUser.programs(in: folder)
    try folder.write("a.png", bytes: TestImages.png(width: 32, height: 32))
    chmod(folder.path + "/a.png", 0o644)
    // When
    let pictor = try PictorProcess(
      in: folder, ["--sources.local_root", folder.path],
      wrapper: Self.wrapper(writable: folder.path), programs: programs)
    for format in ["jpeg", "webp", "avif", "gif", "png"] {
      let answer = try pictor.get("/image?url=local:///a.png&w=16&format=\(format)")
      #expect(answer.status == 200, "\(format): \(answer.text)")
    }
    // Then
    try pictor.waitFor("an entry on disk") { $0.disk.entries > 0 }
    let status = contents(of: "/proc/\(pictor.id)/status")
    for kind in ["CapInh", "CapPrm", "CapEff", "CapBnd"] {
      #expect(status.contains("\(kind):\t0000000000000000"), "\(status)")
    }
    #expect(status.contains("NoNewPrivs:\t1"))
    let root = contents(of: "/proc/\(pictor.id)/mountinfo").split(separator: "\n").filter {
      $0.split(separator: " ").dropFirst(4).first == "/"
    }
    #expect(root.last?.split(separator: " ").dropFirst(5).first?.hasPrefix("ro") == true)
  }
}
