// Pictor.swift is beside this file. The server sends the pixels of the view: no .imageThumbnailPixelSize, no transformer.
import Foundation

let host = "images.example.com"
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

#if canImport(SDWebImage)
  import SDWebImage
  func show(_ source: String, in view: UIImageView) {
    let density = view.traitCollection.displayScale
    let url = pictorURL(source, width: view.bounds.width, height: view.bounds.height, density: density)
    // Without this factor, SDWebImage takes that of an "@2x" in the source's name.
    view.sd_setImage(with: url, placeholderImage: nil, options: [], context: [.imageScaleFactor: density])
  }

  /// Once, at the start. SDWebImage names no format. iOS 14 decodes WebP; add image/avif if all coders of the app do.
  func setUpPictor() {
    SDWebImageManager.shared.cacheKeyFilter = SDWebImageCacheKeyFilter { $0.host == host ? pictorKey($0) : $0.absoluteString }
    SDWebImageDownloader.shared.requestModifier = SDWebImageDownloaderRequestModifier { request in
      var request = request
      if request.url?.host == host { request.setValue("image/webp,image/*", forHTTPHeaderField: "Accept") }
      return request
    }
  }
#endif
