// SignCommand: writes the URLs of the command line with their signatures.

import Core

/// `pictor sign …`.
public struct SignCommand {
  private let signer: URLSigner
  private let order: SigningOrder
  /// Replaced by tests, as all below.
  var console = Console.standard
  var now = UnixTime.now

  /// Creates a command with the keys of the settings.
  ///
  /// - Throws: `ConfigurationError` if a secret cannot be read, or if there is no key.
  public init(
    _ settings: SigningSettings, environment: [String: String], order: SigningOrder
  ) throws(ConfigurationError) {
    guard !settings.keys.isEmpty else {
      throw ConfigurationError(at: "signing.keys", "a key of the server is required")
    }
    if let id = order.key, !settings.keys.contains(where: { $0.id == id }) {
      let ids = settings.keys.map(\.id).joined(separator: ", ")
      throw ConfigurationError(at: "--key", "'\(id)' is not one of \(ids)")
    }
    signer = URLSigner(
      keys: try settings.secrets(environment: environment).map {
        SigningKey(id: $0.id, secret: $0.secret)
      })
    self.order = order
  }

  /// Writes a line for each URL. Returns the exit status: 0, or 1 if a URL cannot be signed, with a
  /// line on standard error.
  public func run() -> CInt {
    var status: CInt = 0
    for url in order.urls {
      do throws(Refusal) {
        console.output(try signed(url) + "\n")
      } catch {
        console.reportError("\(PrefetchReport.printable(url)): \(error.description)")
        status = 1
      }
    }
    return status
  }

  /// Why a URL cannot be signed.
  private enum Refusal: String, Error, CustomStringConvertible {
    case notOurs =
      "not a URL of /image or /info with a query, such as /image?url=https%3A%2F%2F…&w=300"
    case unwritable = "it has a blank, a control character or a '#': write %20 and %23"
    case undecodable = "its query is not percent-encoded UTF-8 without NUL"

    var description: String { rawValue }
  }

  private func signed(_ url: String) throws(Refusal) -> String {
    guard url.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7f && $0 != UInt8(ascii: "#") }) else {
      throw .unwritable
    }
    let parts = url.split(separator: "?", maxSplits: 1, omittingEmptySubsequences: false)
    guard parts.count == 2, !parts[1].isEmpty, let path = Self.signedPath(of: parts[0]) else {
      throw .notOurs
    }
    let dropped = order.expiresIn == nil ? ["sig"] : ["sig", "exp"]
    var pieces = parts[1].split(separator: "&").filter {
      !dropped.contains(PercentEncoding.decode($0.utf8.prefix { $0 != UInt8(ascii: "=") }) ?? "")
    }
    if let time = order.expiresIn {
      pieces.append("exp=\(now.seconds + Int(time.components.seconds))")
    }
    let query = pieces.joined(separator: "&")
    guard let text = SignedText(path: path, query: query.utf8),
      let signature = signer.sign(text, with: order.key)
    else { throw .undecodable }
    return "\(parts[0])?\(query)&sig=\(signature)"
  }

  /// Returns the path at the server: the last segment. What is in front is a proxy's.
  private static func signedPath(of base: Substring) -> String? {
    let isAbsolute = base.hasPrefix("http://") || base.hasPrefix("https://")
    let rest = isAbsolute ? base.drop { $0 != ":" }.dropFirst(3) : base
    guard isAbsolute || base.hasPrefix("/") else { return nil }
    return ["/image", "/info"].first { rest.hasSuffix($0) }
  }
}
