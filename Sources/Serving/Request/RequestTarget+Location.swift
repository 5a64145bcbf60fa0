// RequestTarget+Location: the URL that a target is redirected to.

import Model
import Signing

extension RequestTarget {
  /// Returns the redirect location that names `format` and has numbers in place of `auto`. It is
  /// relative to the last path segment (RFC 3986, section 5.2), because a proxy may use another
  /// path. The location of a signed target is signed by `signer`, with the same `exp`.
  ///
  /// - Parameter sizing: the sizing of this client's request.
  func location(naming format: ImageFormat, sizing: Sizing, signer: URLSigner) -> String {
    let origin = Self.originForm(raw[...])
    let path = origin.prefix { $0 != UInt8(ascii: "?") }
    let name = path[(path.lastIndex(of: UInt8(ascii: "/")) ?? path.startIndex)...].dropFirst()
    // Replaces `auto`, and drops a signature of the whole.
    var replaced = isNegotiated ? ["format": format.rawValue] : [:]
    if isSigned { replaced["sig"] = "" }
    if hintUse?.needs.density == true {
      replaced["scale"] = sizing.scale.map(ResponseHead.decimal) ?? ""
    }
    if hintUse?.needs.width == true {
      replaced["w"] = sizing.width.map(String.init) ?? ""
      // As rounded for this client: next to a width, it would be rounded in another way.
      replaced["h"] = sizing.height.map(String.init) ?? ""
    }
    let kept = query.split(separator: UInt8(ascii: "&")).filter {
      replaced[ImageQuery.name(of: $0.prefix { $0 != UInt8(ascii: "=") }) ?? ""] == nil
    }
    let added = replaced.filter { !$0.value.isEmpty }.sorted { $0.key < $1.key }
    let parts = kept.map(Self.written) + added.map { $0.key + "=" + $0.value }
    let unsigned = parts.joined(separator: "&")
    let signature =
      isSigned
      ? SignedText(path: self.path, query: unsigned.utf8).flatMap { signer.sign($0) } : nil
    return Self.written(name) + "?" + unsigned + (signature.map { "&sig=" + $0 } ?? "")
  }

  /// Percent-encodes the bytes that are not URI characters (RFC 3986, section 2).
  private static func written(_ bytes: ArraySlice<UInt8>) -> String {
    var text = ""
    for byte in bytes {
      if (0x21...0x7e).contains(byte), !"\"#<>\\^`{|}".utf8.contains(byte) {
        text.unicodeScalars.append(Unicode.Scalar(byte))
      } else {
        text += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16, uppercase: true)
      }
    }
    return text
  }
}
