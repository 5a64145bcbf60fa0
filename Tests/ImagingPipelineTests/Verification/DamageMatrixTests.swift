// DamageMatrixTests: how many damaged files decode to images.

import Core
import Glibc
import TestSupport
import Testing

@Suite(.onOwnThreads, .serialized) struct DamageMatrixTests {
  @Test(arguments: DamagedKind.all.indices)
  func `few damaged files are rendered, and no more than the format's decoder accepts`(
    index: Int
  ) throws {
    // Given
    let kind = DamagedKind.all[index]
    // When
    let row = try DamageRow(kind)
    Self.print(row)
    // Then
    #expect(row.passed[.truncated] ?? 0 == 0)
    #expect(row.total <= row.passedByDecoder)
    if [.jpeg, .png, .gif].contains(kind.format) {
      #expect(row.total * 20 <= Damage.allCases.count * Damage.positions)
    }
  }

  /// Appends the row to the table of docs/performance.md, if the environment names a file for it.
  private static func print(_ row: DamageRow) {
    guard let path = getenv("PICTOR_DAMAGE_TABLE").map({ String(cString: $0) }),
      let file = fopen(path, "a")
    else { return }
    defer { fclose(file) }
    let counts = Damage.allCases.map { "\(row.passed[$0] ?? 0)" }.joined(separator: " | ")
    fputs("| \(row.kind.name) | \(counts) | \(row.total) | \(row.passedByDecoder) |\n", file)
  }
}
