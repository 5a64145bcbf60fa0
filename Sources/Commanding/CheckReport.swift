// CheckReport: the items of docs/production.md with what a configuration, a machine and a running
// server make of them, and their output.

import FoundationEssentials

/// What `pictor check` prints.
public struct CheckReport: Sendable {
  /// What became of an item.
  public enum State: String, Encodable, Sendable {
    /// It is done.
    case ok
    /// It is to be done before clients come.
    case open
    /// It is worth a thought, and may be right as it is.
    case advice
  }

  /// The sections of docs/production.md, by their headings.
  public enum Section: String, Encodable, Sendable {
    case size = "Size it"
    case shut = "Shut it"
    case proxy = "Put it behind a proxy and a CDN"
    case watch = "Watch it"
    case update = "Update it"

    /// Where the document has it.
    var anchor: String {
      "docs/production.md#" + rawValue.lowercased().split(separator: " ").joined(separator: "-")
    }
  }

  /// One item.
  public struct Item: Encodable, Sendable {
    let state: State
    let key: String
    let found: String
    let document: String
    fileprivate let section: Section

    private enum CodingKeys: CodingKey { case state, key, found, document }
  }

  /// The items in the order of the document.
  public private(set) var items: [Item] = []
  /// Replaced by tests.
  var console = Console.standard

  /// Creates a report without items.
  public init() {}

  /// Adds an item: what holds, and what is open or to be thought about in place of it.
  public mutating func add(
    _ section: Section, _ key: String, _ found: String, open: String? = nil, advice: String? = nil
  ) {
    let state = open != nil ? State.open : advice != nil ? .advice : .ok
    let problem = (open ?? advice).map { found.isEmpty ? $0 : "\(found): \($0)" }
    items.append(
      Item(
        state: state, key: key, found: PrefetchReport.printable(problem ?? found),
        document: section.anchor, section: section))
  }

  /// Prints the items. Returns the exit status: 0 if none is open, else 1.
  public func run(isJSON: Bool) -> CInt {
    let open = items.count { $0.state == .open }
    if isJSON {
      let encoder = JSONEncoder()
      encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes, .prettyPrinted]
      let json = (try? encoder.encode(items)) ?? Data()
      console.output(String(decoding: json, as: UTF8.self) + "\n")
    } else {
      let width = items.map(\.key.count).max() ?? 0
      var last: Section?
      for item in items {
        if item.section != last {
          console.output("\(last == nil ? "" : "\n")\(item.section.rawValue)  \(item.document)\n")
        }
        last = item.section
        func padded(_ text: String, _ width: Int) -> String {
          text + String(repeating: " ", count: width - text.count)
        }
        console.output(
          "  \(padded(item.state.rawValue, 6))  \(padded(item.key, width))  \(item.found)\n")
      }
      console.output("\n\(open) open of \(items.count)\n")
    }
    return open == 0 ? 0 : 1
  }
}
