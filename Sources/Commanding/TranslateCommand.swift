// TranslateCommand: writes what the URLs of other image servers are here.

import Core
import Doors

/// `pictor translate …`.
public struct TranslateCommand {
  private let doors: [DoorPlace]
  private let urls: [String]
  private let console: Console

  /// Creates a command.
  ///
  /// - Parameters:
  ///   - urls: the URLs, each with or without a host.
  ///   - peer: the peer whose URLs they are; `nil`: those of the configured doors.
  /// - Throws: `ConfigurationError` without a door, or if a secret cannot be read.
  public init(
    _ urls: [String], of peer: String?, doors: [Peer: DoorSettings], environment: [String: String]
  ) throws(ConfigurationError) {
    try self.init(urls, of: peer, doors: doors, environment: environment, console: .standard)
  }

  init(
    _ urls: [String], of peer: String?, doors: [Peer: DoorSettings], environment: [String: String],
    console: Console
  ) throws(ConfigurationError) {
    var settings = doors
    if let peer = peer.flatMap(Peer.init) { settings = [peer: doors[peer] ?? DoorSettings()] }
    guard !settings.isEmpty else {
      throw ConfigurationError(at: "doors", "a door is required, or --door PEER")
    }
    self.doors = try DoorPlace.places(of: settings, environment: environment)
    self.urls = urls
    self.console = console
  }

  /// Writes the query of each URL and its notes. Returns the exit status: 0, or 1 if a URL is
  /// refused, with a line on standard error.
  public func run() -> CInt {
    var status: CInt = 0
    for url in urls {
      do throws(ImageError) {
        let translation = try translated(url)
        let path = translation.isDescription ? "/info?" : "/image?"
        console.output(path + translation.query + "\n")
        for note in translation.notes { console.output("  \(note)\n") }
      } catch {
        console.reportError("\(PrefetchReport.printable(url)): \(error.message)")
        status = 1
      }
    }
    return status
  }

  private func translated(_ url: String) throws(ImageError) -> DoorTranslation {
    let isAbsolute = url.hasPrefix("http://") || url.hasPrefix("https://")
    let target = isAbsolute ? url.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" } : url[...]
    let path = target.prefix { $0 != "?" }
    for place in doors {
      let query = target.dropFirst(path.count + 1)
      if let address = place.address(path: path.utf8, query: query.utf8) {
        return try place.door.translated(address)
      }
    }
    throw .notFound(path: String(path))
  }
}
