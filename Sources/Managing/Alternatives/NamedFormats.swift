// NamedFormats: stores a negotiated variant under its explicit format, too, for redirected clients.

import Model

extension ImageManager {
  /// See `ImageProvider`.
  public func keepNamed(_ variant: Variant, of request: ImageRequest) async {
    let named = request.naming(variant.info.format)
    let look = await look(for: named)
    let isKept = [look.memory, look.disk].contains { $0?.freshness.isFresh(at: now()) == true }
    guard !isKept, variant.info.freshness.isStorable,
      let own = await copy(of: lasting(variant, of: request), as: named.key)
    else { return }
    _ = store(own, in: request.options.store)
  }

  /// Returns the fallback's own variant if `variant` is a short-lived copy of it that stands in for
  /// an AVIF.
  private func lasting(_ variant: Variant, of request: ImageRequest) -> Variant {
    guard let quick = quicker(request), let made = memory.peek(quick.key),
      made.info.etag == variant.info.etag,
      made.info.freshness.lifetime > variant.info.freshness.lifetime
    else { return variant }
    return made
  }
}
