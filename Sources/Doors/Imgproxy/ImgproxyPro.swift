// ImgproxyPro: the options of imgproxy Pro, which are refused or ignored by name.

import Core

extension ImgproxyDoor {
  /// The options of imgproxy Pro. The free imgproxy refuses them all.
  static let pro: [DoorOption<ImgproxyDraft>] =
    refused.flatMap { reason, names in
      names.map { option($0, standing: .refused("imgproxy Pro: " + reason)) }
    }
    + ignored.flatMap { reason, names in
      names.map { option($0, standing: .ignored("imgproxy Pro: " + reason)) }
    }

  /// Options by the reason, each with its names.
  private static let refused: KeyValuePairs = [
    "a crop has its own shape": ["crop_aspect_ratio crop_ar car"],
    "no objects are detected": [
      "objects_position obj_pos op", "crop_objects", "blur_detections bd", "draw_detections dd",
    ],
    "the background is opaque": ["background_alpha bga"],
    "its scale or its curve is another here": [
      "adjust a", "brightness br", "contrast co", "saturation sa", "monochrome mc", "duotone dt",
      "colorize col",
    ],
    "the whole image is treated alike": ["blur_areas ba", "progressive_blur pbl", "gradient gr"],
    "watermarks are the operator's images": [
      "watermark_url wmu", "watermark_text wmt", "watermark_size wms",
      "watermark_rotate wm_rot wmr",
      "watermark_shadow wmsh",
    ],
    "vectors are sent as they are": ["style st"],
    "results are in sRGB, or keep their profile": ["color_profile cp icc"],
    "an animation is whole, of pages the first is used": [
      "page pg", "pages pgs", "disable_animation da",
    ],
    "there are no videos": [
      "video_thumbnail_second vts", "video_thumbnail_keyframes vtk", "video_thumbnail_tile vtt",
      "video_thumbnail_animation vta",
    ],
    "fallback images are the operator's": ["fallback_image_url fiu"],
    "sources are not compared with a digest": ["hashsum hs"],
  ]

  private static let ignored: KeyValuePairs = [
    "always Lanczos, as by default": ["resizing_algorithm ra"],
    "sharpening is that of sharpen": ["unsharp_masking ush"],
    "browsers do not read it": ["dpi"],
    "encoders have the operator's quality and effort": [
      "autoquality aq", "jpeg_options jpgo", "png_options pngo", "webp_options webpo",
      "avif_options avifo",
    ],
  ]
}

extension DoorOption where Draft == ImgproxyDraft {
  /// Creates an option with a list of names.
  init(
    names: [String], standing: DoorStanding,
    read: @escaping @Sendable ([String], inout ImgproxyDraft) throws(OptionFault) -> Void
  ) {
    (self.names, self.standing, self.read) = (names, standing, read)
  }
}
