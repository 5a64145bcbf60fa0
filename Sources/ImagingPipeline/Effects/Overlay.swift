// Overlay: decodes the watermark and composites it onto each frame of the result.

import CVips
import Core

/// A watermark as an imaging worker receives it.
public struct OverlaySource {
  var bytes: UnsafeRawBufferPointer
  let density: Int
  let placement: WatermarkPlacement

  /// Creates a watermark source.
  ///
  /// - Parameters:
  ///   - bytes: The bytes of the watermark image, which are untrusted input. They must not change
  ///     until the pipeline returns.
  ///   - density: Pixels per point of the watermark: 1, 2 or 3.
  ///   - placement: The placement on the result.
  public init(bytes: UnsafeRawBufferPointer, density: Int, placement: WatermarkPlacement) {
    self.bytes = bytes
    self.density = density
    self.placement = placement
  }
}

/// A watermark ready to be composited: upright, in sRGB or grey with alpha, at its final size, in
/// memory.
///
/// The watermark passes through the same mending, detection, limits and decoder as any source; only
/// its first frame is used. Blending is `over` (Porter and Duff) on 8-bit sRGB values, as in
/// browsers. In linear light a black watermark would look thinner than drawn, and a white one
/// bolder.
final class Overlay {
  private let layer: Image
  private let offset: (x: Int, y: Int)

  /// Decodes the watermark for a result.
  ///
  /// - Throws: `ImageError.watermark` with the fault of the watermark; `.internal`.
  init(
    _ source: OverlaySource, on geometry: Geometry, limits: ImagingLimits
  ) throws(ImageError) {
    do throws(ImageError) {
      let tile = try Self.decode(source, for: geometry, limits: limits)
      let place = source.placement.corner(of: tile.size, on: geometry.canvas)
      guard let tiling = source.placement.tiling else {
        offset = place
        layer = tile
        return
      }
      layer = try tile.tiled(
        tiling, at: place, withGap: source.placement.gap, over: geometry.canvas)
      offset = (tiling.isAcross ? 0 : place.x, tiling.isDown ? 0 : place.y)
    } catch {
      throw error.ofWatermark
    }
  }

  /// Composites the watermark onto a frame. A grey frame becomes coloured if the watermark has
  /// colour; no frame gains alpha.
  func composited(onto frame: consuming Image) throws(ImageError) -> Image {
    let keepsAlpha = frame.hasAlpha
    let space =
      frame.isGrey && layer.isGrey ? VIPS_INTERPRETATION_B_W : VIPS_INTERPRETATION_sRGB
    let x = CInt(offset.x)
    let y = CInt(offset.y)
    let result = try layer.withVipsImage { layer throws(ImageError) in
      try frame.made("watermark") { pictor_vips_over($0, layer, $1, x, y, space) }
    }
    // The result is opaque wherever the frame is opaque.
    return keepsAlpha ? result : try result.bands(0, count: result.bands - 1)
  }

  /// Estimates the decoding of a watermark, after the checks of any source.
  ///
  /// - Throws: `ImageError.watermark`.
  static func cost(of source: OverlaySource, limits: ImagingLimits) throws(ImageError) -> JobCost {
    do throws(ImageError) {
      let (header, work) = try checked(source, limits: limits)
      return work.cost(of: source.bytes, header, frames: 1)
    } catch {
      throw error.ofWatermark
    }
  }

  private static func checked(
    _ source: OverlaySource, limits: ImagingLimits
  ) throws(ImageError) -> (SourceHeader, SourceCost) {
    let format = try Sniffer.format(of: source.bytes, allowed: limits.formats)
    try ContainerLengths.check(source.bytes, as: format, limits: limits)
    let header = try SourceHeader(
      of: source.bytes, as: format, frame: nil, failOn: limits.failOn)
    try header.check(against: limits)
    return (header, try SourceCost.check(source.bytes, header: header, limits: limits))
  }

  private static func decode(
    _ source: OverlaySource, for geometry: Geometry, limits: ImagingLimits
  ) throws(ImageError) -> Image {
    let (header, _) = try checked(source, limits: limits)
    do throws(ImageError) {
      return try layer(of: source, header: header, for: geometry, limits: limits)
    } catch {
      throw Blame.settled(error, source: source.bytes, header: header, frames: 1)
    }
  }

  private static func layer(
    of source: OverlaySource, header: SourceHeader, for geometry: Geometry,
    limits: ImagingLimits
  ) throws(ImageError) -> Image {
    var transform = Transform()
    let part = try SourceRegion(of: header, for: transform)
    let size = source.size(of: part.size, on: geometry)
    transform.sizing.width = size.width
    transform.sizing.height = size.height
    transform.sizing.fit = .fill
    transform.sizing.enlarge = true
    transform.output.format = .png
    // The watermark lies within the result, which has its own limits.
    transform.sizing.limitBytes = .max
    let own = Geometry(
      of: part.size, isVector: header.format == .svg, sizing: transform.sizing,
      density: source.density,
      frames: 1, limits: Geometry.Limits(limits, for: .image))
    let loader = Loader(
      source: source.bytes, header: header, part: part, maximumPixels: limits.maximumPixels,
      threads: limits.maximumThreads)
    let loaded = try loader.load(for: own, frames: 1)
    var steps = FrameSteps(
      header: header, part: part, window: loaded.window, geometry: own,
      transform: transform,
      output: try Output(
        for: transform, header: header, frames: 1, geometry: own, limits: limits),
      threads: limits.maximumThreads)
    var image = try steps.apply(to: loaded.image)
    if !image.hasAlpha { image = try image.withOpaqueAlpha() }
    if source.placement.opacity < 1 { image = try image.faded(to: source.placement.opacity) }
    return try image.inMemory()
  }
}

extension OverlaySource {
  /// Returns the watermark's size on the result: keeps the aspect ratio and never exceeds the
  /// result on either side.
  fileprivate func size(of own: PixelSize, on geometry: Geometry) -> PixelSize {
    let width = Double(own.width)
    let height = Double(own.height)
    let canvas = (width: Double(geometry.canvas.width), height: Double(geometry.canvas.height))
    let wanted =
      placement.scale.map { canvas.width * $0 / width }
      ?? geometry.density / (placement.density ?? Double(density))
    let factor = min(wanted, canvas.width / width, canvas.height / height)
    func side(_ exact: Double, atMost maximum: Int) -> Int {
      min(max(1, Int(exact.rounded())), maximum)
    }
    return PixelSize(
      width: side(width * factor, atMost: geometry.canvas.width),
      height: side(height * factor, atMost: geometry.canvas.height))
  }
}

extension WatermarkPlacement {
  /// Returns the upper left corner of an area at this place of a canvas, which is not smaller.
  fileprivate func corner(of size: PixelSize, on canvas: PixelSize) -> (x: Int, y: Int) {
    guard tiling != .all else { return (0, 0) }
    return (
      Offset.start(
        room: canvas.width - size.width, anchor: position.anchor.x, by: offset.x, of: canvas.width),
      Offset.start(
        room: canvas.height - size.height, anchor: position.anchor.y, by: offset.y,
        of: canvas.height)
    )
  }
}

extension WatermarkPlacement.Tiling {
  /// Whether tiles lie side by side.
  fileprivate var isAcross: Bool { self != .column }
  /// Whether tiles lie below each other.
  fileprivate var isDown: Bool { self != .row }
}

extension Image {
  /// Returns the image with its alpha multiplied by `opacity`, below 1.
  fileprivate func faded(to opacity: Double) throws(ImageError) -> Image {
    let factors = [Double](repeating: 1, count: bands - 1) + [opacity]
    // libvips truncates the fraction, so adding 0.5 rounds.
    return try scaled(
      "opacity", by: factors, plus: factors.map { _ in 0.5 }, toBytes: true)
  }

  /// Tiles the image so that a tile is at a place of `canvas`, until it covers the canvas on the
  /// axes of the tiling.
  fileprivate consuming func tiled(
    _ tiling: WatermarkPlacement.Tiling, at place: (x: Int, y: Int), withGap gap: Offset,
    over canvas: PixelSize
  ) throws(ImageError) -> Image {
    let own = size
    let (across, down) = (tiling.isAcross, tiling.isDown)
    let tile = PixelSize(
      // Behind a gap of the canvas's side, there is nothing to see.
      width: own.width + (across ? min(gap.x.pixels(of: canvas.width), canvas.width) : 0),
      height: own.height + (down ? min(gap.y.pixels(of: canvas.height), canvas.height) : 0))
    let area = PixelSize(
      width: across ? canvas.width : own.width, height: down ? canvas.height : own.height)
    // How much of the first tile is cut off.
    let x = across ? (tile.width - place.x % tile.width) % tile.width : 0
    let y = down ? (tile.height - place.y % tile.height) % tile.height : 0
    let clear = [Double](repeating: 0, count: bands)
    // Read in any order; with its gap it is made as it is read.
    self = try inMemory()
    if tile != own { self = try placed(x: 0, y: 0, on: tile, background: clear) }
    // libvips copies tile by tile, so tiny tiles are first joined to larger ones.
    let least = PixelSize(width: across ? 128 : 1, height: down ? 128 : 1)
    let isTiny = tile.width < least.width || tile.height < least.height
    let block = isTiny ? try replicated(toCover: least).inMemory() : self
    let all = PixelSize(width: area.width + x, height: area.height + y)
    return try block.replicated(toCover: all).cut(x: x, y: y, area)
  }

  private func replicated(toCover canvas: PixelSize) throws(ImageError) -> Image {
    let across = (canvas.width + size.width - 1) / size.width
    let down = (canvas.height + size.height - 1) / size.height
    return try made("repeat", by: "replicate", "across=\(across),down=\(down)")
  }
}
