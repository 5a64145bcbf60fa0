// TranslateCommand: writes what the URLs of other image servers are here.

import Core
import Doors

/// `pictor translate …`.
public struct TranslateCommand {
  private let doors: [DoorPlace]
  private let urls: [String]
  /// Replaced by tests.
  var console = Console.standard

  /// Creates a command.
  ///
  /// - Parameters:
  ///   - urls: the URLs, each with or without a host.
  ///   - peer: the peer whose URLs they are; `nil`: those of the configured doors.
  /// - Throws: `ConfigurationError` without a door, or if a secret cannot be read.
  public init(
    _ urls: [String], of peer: String?, doors: [Peer: DoorSettings], environment: [String: String]
  ) throws(ConfigurationError) {
    var settings = doors
    if let peer = peer.flatMap(Peer.init) { settings = [peer: doors[peer] ?? DoorSettings()] }
    guard !settings.isEmpty else {
      throw ConfigurationError(at: "doors", "a door is required, or --door PEER")
    }
    self.doors = try DoorPlace.places(of: settings, environment: environment)
    self.urls = urls
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
    let target = DoorPlace.target(of: url)
    for place in doors {
      if let address = place.address(in: target) { return try place.door.translated(address) }
    }
    throw .notFound(path: String(target.prefix { $0 != "?" }))
  }
}

extension DoorPlace {
  /// Returns what follows the host of a URL; a target as it is.
  static func target(of url: String) -> Substring {
    let isAbsolute = url.hasPrefix("http://") || url.hasPrefix("https://")
    return isAbsolute ? url.drop { $0 != ":" }.dropFirst(3).drop { $0 != "/" } : url[...]
  }

  /// Returns the address at this door of a target; `nil` if the peer has no such address.
  func address(in target: Substring) -> DoorAddress? {
    let path = target.prefix { $0 != "?" }
    return address(path: path.utf8, query: target[path.endIndex...].dropFirst().utf8, host: host)
  }
}
