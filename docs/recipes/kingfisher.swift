// Pictor.swift is beside this file. The server sends the pixels of the view: no DownsamplingImageProcessor.
import Foundation

let pictor = Pictor(base: "https://images.example.com")

func pictorURL(_ source: String, width: Double, height: Double, density: Double) -> URL? {
  pictor.url(source) {
    $0.width = width
    $0.height = height
    $0.scale = density
    $0.fit = .cover
  }
}

/// Names an image in caches: a signed URL of another hour is the same image.
func pictorKey(_ url: URL) -> String {
  var parts = URLComponents(url: url, resolvingAgainstBaseURL: false)
  parts?.percentEncodedQueryItems?.removeAll { $0.name == "exp" || $0.name == "sig" }
  return parts?.string ?? url.absoluteString
}

#if canImport(Kingfisher)
  import Kingfisher
  import UIKit

  // iOS 14 decodes WebP, iOS 16 AVIF too.
  let accept = AnyModifier { request in
    var request = request
    request.setValue("image/webp,image/*", forHTTPHeaderField: "Accept")
    return request
  }

  @MainActor func show(_ source: String, in view: UIImageView) {
    let density = view.traitCollection.displayScale
    guard let url = pictorURL(source, width: view.bounds.width, height: view.bounds.height, density: density) else { return }
    view.kf.setImage(
      with: KF.ImageResource(downloadURL: url, cacheKey: pictorKey(url)),
      options: [.requestModifier(accept), .scaleFactor(density)])
  }
#endif
