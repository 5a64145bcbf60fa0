// NamedFormats: what is kept by the name of its format as well, since its client is sent on to that.

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

  /// What was made, where this is the short-lived answer that stands in for an AVIF: by its name it stands in for nothing.
  private func lasting(_ variant: Variant, of request: ImageRequest) -> Variant {
    guard let quick = quicker(request), let made = memory.peek(quick.key),
      made.info.etag == variant.info.etag,
      made.info.freshness.lifetime > variant.info.freshness.lifetime
    else { return variant }
    return made
  }
}
