// Pictor.swift is beside this file. The server sends the pixels of the view: no ImageProcessors.Resize.
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

#if canImport(Nuke)
  import Nuke
  import NukeExtensions
  import UIKit

  func pictorRequest(_ source: String, size: CGSize, density: Double) -> ImageRequest? {
    guard let url = pictorURL(source, width: size.width, height: size.height, density: density) else { return nil }
    var request = URLRequest(url: url)
    // iOS 14 decodes WebP, iOS 16 AVIF too.
    request.setValue("image/webp,image/*", forHTTPHeaderField: "Accept")
    return ImageRequest(urlRequest: request, userInfo: [.imageIdKey: pictorKey(url), .scaleKey: Float(density)])
  }

  @MainActor func show(_ source: String, in view: UIImageView) {
    let request = pictorRequest(source, size: view.bounds.size, density: view.traitCollection.displayScale)
    NukeExtensions.loadImage(with: request, into: view)
  }
#endif
