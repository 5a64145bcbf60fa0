// IPXTests: the door of ipx.

import Core
import Testing

@testable import Doors

@Suite struct IPXDoorTests {
  static let kit: DoorKit = {
    var options = DoorOptions()
    options.baseURL = "local://"
    options.allowedSources = ["https://pic.example"]
    options.replacements = [.init(pattern: "/picsum", text: "https://picsum.photos")]
    return DoorKit(
      door: IPXDoor(options), form: "/*/a.jpg",
      constants: [
        "scale": "1", "url": "local:///a.jpg", "format": "source", "pass": "vector", "orient": "0",
      ])
  }()

  @Test func `reads modifiers`() {
    Self.kit.expect(
      """
      _ > = | w_200 > w=200 | width_200 > w=200 | h_100 > h=100
      s_200x100 > w=200 h=100 fit=cover-down | s_200 > w=200 h=200 fit=cover-down
      s=200x100 > w=200 h=100 fit=cover-down | s_200x100,enlarge > w=200 h=100 fit=cover enlarge=1
      resize_200x100&fit_contain > w=200 h=100 fit=contain background=000000 [fit]
      s_200x100,fit_fill,enlarge > w=200 h=100 fit=fill enlarge=1
      s_200x100,fit_inside > w=200 h=100 [fit] | s_200x100,fit_outside > w=200 h=100 fit=outside
      w_200,h_100 > w=200 h=100 fit=cover-down | s_20000x10000 > w=8192 h=4096 fit=cover-down
      s_0x5 > 400 s_0x5: a whole number from 1 to 1000000 | s_1x2x3 > 400 s_1x2x3: WIDTHxHEIGHT
      w_ > 400 w_: a whole number from 1 to 1000000
      w_1e3 > 400 w_1e3: a whole number from 1 to 1000000
      fit_other > 400 fit_other: one of contain, cover, fill, inside, outside
      kernel_nearest > [kernel] | s_9x8,kernel_lanczos3 > w=9 h=8 fit=cover-down
      s_9x8,pos_right-top > position=right-top w=9 h=8 fit=cover-down
      s_9x8,pos_right%20top > position=right-top w=9 h=8 fit=cover-down
      s_9x8,position_northwest > position=left-top w=9 h=8 fit=cover-down
      s_9x8,pos_entropy > position=entropy w=9 h=8 fit=cover-down
      s_9x8,pos_17 > position=attention w=9 h=8 fit=cover-down
      s_9x8,pos_0 > w=9 h=8 fit=cover-down | trim > trim=10 | trim_100 > trim=100 | trim_0 > =
      trim_-1 > 400 trim_-1: a number from 0 to 1000000
      extend_1_2_3_4 > pad=1,2,3,4 background=000000
      extend_1_2_3_4,b_00ff00 > pad=1,2,3,4 background=00ff00
      extend_1_2_3_4_mirror > 400 extend_1_2_3_4_mirror: edges have the background only
      extend_1_2 > 400 extend_1_2: 4 numbers | extend_0_0_0_0 > = | b_f00 > background=ff0000
      b_ff000080 > background=ff000080 | b_red > background=ff0000 | b_no > 400 b_no: a colour
      extract_1_2_3_4 > crop=1,2,3,4
      crop_1_2_0_4 > 400 crop_1_2_0_4: a width and a height above 0
      f_webp > format=webp animated=0 no-pass | f_webp,a > format=webp no-pass
      f_gif > format=gif no-pass | f_jpg > format=jpeg animated=0 background=000000 no-pass
      f_tiff > format=tiff animated=0 no-pass | f_auto > format=auto animated=0 no-pass [f=auto]
      f_heif > 400 f_heif: HEIC is read, and not written | f_svg > = | q_50 > quality=50
      q_0 > 400 q_0: a whole number from 1 to 100 | rotate_90 > rotate=90 background=000000
      rotate_-90 > rotate=270 background=000000
      rotate_45,b_00ff00 > rotate=45 background=00ff00 | rotate > no-orient
      autoorient > no-orient | rotate_4000 > 400 rotate_4000: a number from -3600 to 3600
      flip > flip=v | flop > flip=h | flip,flop > flip=hv | flip_false > =
      sharpen > sharpen=0.5 [sharpen=] | sharpen_2 > sharpen=2
      sharpen_2_1_2 > sharpen=2 [sharpen] | sharpen_11 > 400 sharpen_11: a number from 0.000001 to 10
      blur > blur=0.5 [blur=] | blur_5 > blur=5 | blur_999 > blur=250
      blur_0.1 > 400 blur_0.1: a number from 0.3 to 1000 | gamma > gamma=2.2 [gamma]
      gamma_3_1 > gamma=3 [gamma] | negate > negate=1 [negate]
      tint_00ff00 > tint=00ff0080 [tint] | grayscale > grayscale=1
      flatten,b_fff > background=ffffff [flatten]
      modulate_2_1.2_90 > brightness=2 saturation=1.2 hue=90
      modulate_2_1.2_90_10 > 400 modulate_2_1.2_90_10: lightness is not added here
      brightness_1.25 > brightness=1.25 | brightness > 400 brightness_: a number from 0 to 1000000
      saturation_0.5 > saturation=0.5 | hue_-90 > hue=270
      lightness_10 > 400 lightness_10: /image has no such effect
      median_10 > 400 median_10: /image has no such effect
      opacity_0.5 > 400 opacity_0.5: /image has no such effect
      embed,f_webp > format=webp animated=0 no-pass [embed] | animated > =
      /_ipx/w_9&f_webp/dir/a%20b%3F.jpg > \
      format=webp url=local:///dir/a%20b%3F.jpg w=9 animated=0 no-pass
      /w_9/https://pic.example/b.jpg%3Fv=1 > url=https://pic.example/b.jpg?v=1 w=9
      /w_9/https:/pic.example/b.jpg > url=https://pic.example/b.jpg w=9
      /w_9/https%3A%2F%2Fpic.example%2Fb.jpg > url=https://pic.example/b.jpg w=9
      /w_9/https://evil.example/b.jpg > 403 no beginning in allow_sources is that of the source
      /w_9/picsum/1000 > url=https://picsum.photos/1000 w=9
      /w_9/../b.jpg > 403 a path has no dot segments
      /_ipx/w_9 > 400 Resource id is missing: /_ipx/w_9
      /_ipx//b.jpg > 400 Modifiers are missing: b.jpg
      """)
  }

  @Test func `refuses in JSON`() {
    let refusal = Self.kit.refusal("w_x")
    #expect(refusal?.status == 400)
    #expect(refusal?.contentType == "application/json")
    #expect(
      refusal?.body.hasPrefix("{\"status\":400,\"statusText\":\"IPX_INVALID_MODIFIER_ARG\"") == true
    )
    #expect(Self.kit.refusal("w")?.body.contains("IPX_MISSING_MODIFIER_ARG") == true)
    #expect(Self.kit.refusal("/_ipx/w_9")?.body.contains("IPX_MISSING_ID") == true)
    #expect(
      Self.kit.refusal("/w_9/https://evil.example/b.jpg")?.body.contains("IPX_FORBIDDEN_HOST")
        == true)
    // A combining mark after a slash hides no dot segment.
    #expect(Self.kit.refusal("/w_9/a/..%2F%CC%81b.jpg")?.status == 403)
  }

  @Test func `answers as ipx`() {
    let door = Self.kit.door
    let missing = door.answer(to: .sourceNotFound(status: 404))
    #expect(missing.status == 404)
    #expect(missing.body.contains("\"statusText\":\"IPX_RESOURCE_NOT_FOUND\""))
    #expect(door.answer(to: .undecodable(detail: "")).status == 400)
    #expect(door.answer(to: .forbiddenSource(reason: "", detail: "")).status == 403)
  }
}
