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
    let freshness = info.freshness
    append("\r\nServer-Timing: disk;dur=")
    append(microseconds: microseconds.disk)
    append(", total;dur=")
    append(microseconds: microseconds.total)
    let fields = HitFields(of: freshness, at: now, idLength: 0, until: nil)
    append("\r\nAge: ")
    append(number: fields.age)
    append("\r\nCache-Control: public, max-age=")
    append(number: fields.maxAge)
    if fields.widths.sharedMaxAge > 0 {
      append(", s-maxage=")
      append(number: fields.sharedMaxAge)
    }
    appendControlRest(freshness, isExpiring: false)
    add("Content-Type", value: info.content.mediaType)
    addValidators(of: info)
    if let image = info.image {
      append("\r\nContent-DPR: ")
      if image.density == 1 { append("1") } else { append(Self.decimal(image.density)) }
      if let size = image.scaledDownFrom { add("X-Scaled-Down", value: size.description) }
      if let quality = image.quality { add("X-Quality", value: "\(quality)") }
      if image.droppedFrames > 0 { add("X-Frames-Dropped", value: "\(image.droppedFrames)") }
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
