// ReplayReport: the tables and the page about a replay. Texts of the log are untrusted input.

import Core
import FoundationEssentials

/// The texts about a replay. Pure functions.
enum ReplayReport {
  /// Returns which share of the requests is exact, near and refused, and what is not exact.
  static func text(_ tally: ReplayTally) -> String {
    let total = tally.shares.values.reduce(.zero, &+)
    let rows = ["exact", "near", "refused", "skipped"].map { word in
      let share = tally.shares[word] ?? .zero
      let percent = share &* 1_000 / total.replacing(with: 1, where: total .== 0)
      return [word] + [0, 1].flatMap { ["\(share[$0])", "\(Double(percent[$0]) / 10) %"] }
    }
    let options = tally.options.values.map { note, share in
      (share, PrefetchReport.printable("\(note)"))
    }.sorted { ($1.0[0], $0.1) < ($0.0[0], $1.1) }.prefix(20)
    return "\(tally.lines) lines, \(tally.linesWithout) without an address\n\n"
      + Console.table([["", "requests", "", "addresses", ""]] + rows) + "\n"
      + Console.table(
        [["requests", "addresses", "not exact"]] + options.map { ["\($0[0])", "\($0[1])", $1] })
  }

  /// Returns what is equal in pairs, and the worst of them.
  static func text(_ pairs: [ReplayPair], worst: some Sequence<ReplayPair>) -> String {
    let images = pairs.filter { $0.difference != nil }
    let equal = ["status", "size", "format"].enumerated().map { index, name in
      let all = index == 0 ? pairs : images
      return [
        name, "\(all.count { $0.facts[0][index] == $0.facts[1][index] }) of \(all.count) equal",
      ]
    }
    func spread(_ values: [Double]) -> String {
      guard !values.isEmpty else { return "-" }
      let parts = [50, 95].map { decimal(values.sorted()[values.count * $0 / 100]) }
      return "median \(parts[0]), 95th percentile \(parts[1])"
    }
    let spreads = [
      ["bytes, new/old", spread(images.map { Double($0.bytes[1]) / Double($0.bytes[0]) })],
      ["RMSE, of 255", spread(images.compactMap(\.difference))],
    ]
    return "\n" + Console.table(equal + spreads) + "\n"
      + Console.table([["RMSE", "old", "new", "the worst"]] + worst.map(cells))
  }

  private static func cells(_ pair: ReplayPair) -> [String] {
    [pair.difference.map(decimal) ?? "-"]
      + [0, 1].map { "\(pair.facts[$0].joined(separator: " ")) \(pair.bytes[$0]) B" }
      + [PrefetchReport.printable(pair.address)]
  }

  private static func decimal(_ value: Double) -> String { "\((value * 100).rounded() / 100)" }

  /// Returns a page that needs no other file: pairs with the answers and their translations, and
  /// the tables.
  static func page(
    _ pairs: [(pair: ReplayPair, answers: [ServerAnswer])], of tally: ReplayTally, text: String
  ) -> String {
    func escaped(_ text: String) -> String {
      let marks: [Unicode.Scalar: String] = ["&": "&amp;", "<": "&lt;", "\n": "\n"]
      return text.unicodeScalars.map { marks[$0] ?? PrefetchReport.printable("\($0)") }.joined()
    }
    let sections = pairs.map { pair, answers in
      let images = answers.map { answer in
        let type =
          answer.body.withUnsafeBytes { FormatSigns.format(of: $0) }?.mediaType ?? "text/plain"
        return "<img alt='\(answer.status)' src='data:\(type);base64,"
          + Data(answer.body).base64EncodedString() + "'>"
      }
      let text = cells(pair).joined(separator: " · ") + "\n" + tally.translation(of: pair.address)
      return "<pre>RMSE \(escaped(text))</pre><div>\(images.joined())</div>\n"
    }
    return """
      <!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>pictor replay</title>
      <meta name="viewport" content="width=device-width">
      <meta http-equiv="Content-Security-Policy" content="default-src 'none'; img-src data:; style-src 'unsafe-inline'">
      <style>
      :root { color-scheme: light dark; font: 1em/1.4 system-ui }
      body { max-width: 80em; margin: auto; padding: 1em }
      pre { overflow: auto } pre:has(+ div) { white-space: pre-wrap; overflow-wrap: anywhere }
      div { display: grid; grid-template-columns: 1fr 1fr; gap: 1em; margin-bottom: 3em }
      img { max-width: 100%; background: repeating-conic-gradient(#8886 0 25%, #0000 0 50%) 0/16px 16px }
      </style>
      <h1>pictor replay</h1><p>Left the old server's answers, right this one's.
      <pre>\(escaped(text))</pre>
      \(sections.joined())
      """
  }
}
