// ResponseHead+DiskHit: the head of a hit from disk, written in one pass.

import Model
import Telemetry

extension ResponseHead {
  /// Creates the head of a disk hit, which depends on nothing but target and `Accept`.
  ///
  /// - Parameters:
  ///   - stem: the file name without extension, in plain characters.
  ///   - date: `now` as an HTTP date.
  ///   - microseconds: the time of the read, and of the request so far.
  ///   - shared: `sharedFields`.
  init(
    ofDiskHit info: VariantInfo, named stem: String, date: UnsafePointer<UInt8>, now: UnixTime,
    id: RequestID, microseconds: (disk: Int, total: Int), shared: [UInt8]
  ) {
    self.init(date: date, id: id)
    append("\r\nServer-Timing: disk;dur=")
    append(microseconds: microseconds.disk)
    append(", total;dur=")
    append(microseconds: microseconds.total)
    addAge(of: info.freshness, at: now, isPrivate: false, until: nil)
    addContent(of: info)
    if let image = info.image {
      append("\r\nContent-Disposition: inline; filename=\"")
      append(stem)
      append(".")
      append(image.format.fileExtension)
      append("\"")
    }
    append(shared)
  }

  /// Returns the fields that all hits from disk have, as they are sent.
  static func sharedFields(
    _ configuration: ServerConfiguration, _ crossOrigin: CrossOrigin, vary: String?
  ) -> [UInt8] {
    var head = ResponseHead()
    head.add("Cache-Status", value: CacheStatus.hit(.disk).headerValue)
    head.add("Content-Security-Policy", value: contentSecurityPolicy)
    if let vary { head.add("Vary", value: vary) }
    head.addCommon()
    configuration.addHints(to: &head)
    crossOrigin.addShared(to: &head)
    return head.bytes
  }
}
