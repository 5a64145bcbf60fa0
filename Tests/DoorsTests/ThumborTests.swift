// ThumborTests: addresses of thumbor and imagor, and what they become.

import Core
import Testing

@testable import Doors

@Suite struct ThumborTests {
  private func kit(_ peer: Peer, _ constants: [String: String] = [:]) -> DoorKit {
    var options = DoorOptions()
    options.baseURL = "local://"
    return DoorKit(
      door: ThumborDoor(peer, options), form: "/unsafe/*a.jpg",
      constants: constants.merging(["scale": "1", "url": "local:///a.jpg", "format": "source"]) {
        $1
      })
  }

  @Test func `thumbor's addresses`() {
    kit(.thumbor, ["orient": "0"]).expect(
      """
      300x200/ > w=300 h=200 fit=cover enlarge=1
      300x/ > w=300 enlarge=1
      x200/ > h=200 enlarge=1
      origxorig/ > =
      origx100/ > w=100% h=100 fit=cover enlarge=1
      200xorig/ > w=200 h=100% fit=cover enlarge=1
      fit-in/300x200/ > w=300 h=200 fit=inside
      full-fit-in/300x200/ > w=300 h=200 fit=outside enlarge=1
      adaptive-fit-in/300x200/ > w=300 h=200 fit=inside swap=1
      adaptive-fit-in/300x300/ > w=300 h=300 fit=inside
      adaptive-full-fit-in/300x200/ > w=300 h=200 fit=outside swap=1 enlarge=1
      fit-in/300xorig/filters:fill(red)/ > w=300 h=100% fit=contain background=ff0000ff
      -300x200/ > flip=h w=300 h=200 fit=cover enlarge=1
      300x-200/ > flip=v w=300 h=200 fit=cover enlarge=1
      -x/ > flip=h
      10x20:5x5/50x60/ > w=50 h=60 fit=cover enlarge=1
      300x200/left/ > w=300 h=200 fit=cover position=left enlarge=1
      300x200/right/bottom/ > w=300 h=200 fit=cover position=right-bottom enlarge=1
      300x200/center/middle/ > w=300 h=200 fit=cover enlarge=1
      300x200/smart/ > w=300 h=200 fit=cover position=faces enlarge=1 [smart]
      trim/ > trim=1 [trim]
      trim:bottom-right/ > trim=1 [trim trim]
      trim:top-left:50/100x100/ > trim=29 w=100 h=100 fit=cover enlarge=1 [trim]
      trim:top-right/ > url=local:///trim%3Atop-right/a.jpg
      trim/10x10:50x50/ > trim=1 crop=10,10,40,40 [trim trim]
      debug/meta/trim/1x2:30x40/fit-in/-5x6/left/top/smart/filters:grayscale()/ > \
      trim=1 grayscale=1 flip=h crop=29,38,right-top,1,2 w=5 h=6 fit=inside (description) [debug meta trim smart trim]
      filters:autojpg()/ > [autojpg]
      filters:background_color(blue)/ > background=0000ffff flatten=1
      filters:blur(7)/ > blur=4.001727
      filters:blur(10,3)/ > blur=2.991207
      filters:blur(1000)/ > blur=81.166432
      filters:brightness(10)/ > brightness=1.21 [brightness]
      filters:brightness(-50)/ > brightness=0.25 [brightness]
      filters:contrast(40)/ > contrast=1.96
      filters:convolution(1;2;1,3,true)/ > 400 convolution: there is no such step
      filters:cover()/ > animated=0
      filters:extract_focal()/ > 400 extract_focal: the source is another address of thumbor
      fit-in/300x200/filters:fill(f00)/ > w=300 h=200 fit=contain background=ff0000ff
      fit-in/300x200/filters:fill(RED,1)/ > w=300 h=200 fit=contain background=ff0000ff flatten=1
      fit-in/300x200/filters:fill(transparent)/ > w=300 h=200 fit=contain background=00000000
      fit-in/300x200/filters:fill(auto)/ > w=300 h=200 fit=contain background=ffffffff [fill(auto)]
      fit-in/300x200/filters:fill(ff000080):upscale()/ > \
      w=300 h=200 fit=contain background=ff000080 enlarge=1
      300x200/filters:fill(red)/ > w=300 h=200 fit=cover enlarge=1
      full-fit-in/300x200/filters:fill(red)/ > w=300 h=200 fit=outside enlarge=1
      fit-in/300x200/filters:proportion(0.5):fill(red)/ > 400 fill: comes after proportion
      fit-in/300x200/filters:rotate(90):fill(red)/ > \
      400 fill: comes after rotate, and the box is no square
      fit-in/300x200/filters:fill(red):rotate(90)/ > \
      rotate=270 w=200 h=300 fit=contain background=ff0000ff
      fit-in/300x300/filters:rotate(90):fill(red)/ > \
      rotate=270 w=300 h=300 fit=contain background=ff0000ff
      fit-in/300x200/filters:fill(red):blur(3)/ > \
      blur=1.835022 w=300 h=200 fit=contain background=ff0000ff [blur]
      300x100/filters:focal(80x0:120x100)/ > w=300 h=100 fit=cover position=100px,50px enlarge=1
      300x100/filters:focal(0x0:20x20):focal(80x80:100x100)/ > \
      w=300 h=100 fit=cover position=50px,50px enlarge=1
      -300x100/filters:focal(80x0:120x100)/ > \
      400 focal: in pixels, and the image is flipped or turned
      300x100/filters:focal(80x0)/ > w=300 h=100 fit=cover enlarge=1 [focal]
      filters:format(webp)/ > format=webp
      filters:format(JPEG)/ > format=jpeg background=000000
      filters:format(heic)/ > [format]
      filters:gifv(webm)/ > [gifv]
      filters:grayscale()/ > grayscale=1
      filters:max_age(600)/ > maxage=600
      filters:max_bytes(7500)/ > maxbytes=7500 [max_bytes]
      3000x2000/filters:no_upscale()/ > w=3000 h=2000 fit=cover
      filters:proportion(0.5)/ > w=50% h=50% fit=fill [proportion]
      301x201/filters:proportion(.5)/ > w=150 h=100 fit=cover enlarge=1 [proportion]
      300x200/filters:proportion(2)/ > w=300 h=200 fit=cover enlarge=1 [proportion]
      filters:quality(40)/ > quality=40
      filters:quality(0)/ > quality=1
      filters:red_eye()/ > [red_eye]
      filters:rgb(20,-20,40)/ > 400 rgb: channels are not changed one by one
      300x200/filters:rotate(90)/ > rotate=270 w=200 h=300 fit=cover enlarge=1
      -300x200/filters:rotate(450)/ > rotate=270 flip=v w=200 h=300 fit=cover enlarge=1
      filters:round_corner(20,255,0,0)/ > radius=20 background=ff0000 [round_corner]
      filters:round_corner(20|40,0,0,0,1)/ > radius=20 background=000000 [round_corner]
      filters:saturation(0.2)/ > saturation=0.2 [saturation]
      filters:saturation(-40)/ > saturation=0 [saturation]
      filters:sharpen(2,1.5,true)/ > sharpen=1.5 [sharpen]
      300x200/filters:stretch()/ > w=300 h=200 fit=fill enlarge=1
      fit-in/300x200/filters:stretch()/ > w=300 h=200 fit=inside
      fit-in/3000x2000/filters:upscale()/ > w=3000 h=2000 fit=inside enlarge=1
      /unsafe/filters:watermark(w.png,10,-20,50)/a.jpg > \
      watermark=local:///w.png watermark_position=left-bottom watermark_offset=10,20 watermark_opacity=0.5 [watermark]
      filters:watermark(w.png,center,center,0)/ > \
      watermark=local:///w.png watermark_position=center [watermark]
      /unsafe/filters:watermark(w.png,10p,-20p,30,15.5)/a.jpg > \
      watermark=local:///w.png watermark_position=left-bottom watermark_offset=0.1,0.2 watermark_opacity=0.7 watermark_scale=0.155 [watermark]
      filters:watermark(w.png,2020p,-99999,0)/ > \
      watermark=local:///w.png watermark_position=left-bottom watermark_offset=1.0,65535 [watermark]
      filters:watermark(w.png,repeat,repeat,50)/ > \
      watermark=local:///w.png watermark_repeat=1 watermark_opacity=0.5 [watermark]
      filters:watermark(w.png,-0,0,0,20,30)/ > \
      watermark=local:///w.png watermark_position=right-top watermark_scale=0.2 [watermark]
      filters:watermark(w.png,repeat,0,0)/ > \
      watermark=local:///w.png watermark_position=left-top watermark_repeat=x [watermark]
      filters:watermark(w.png,0,0,0,none,30)/ > 400 watermark: its height is a share
      filters:watermark(w.png,0,0,100)/ > [watermark]
      filters:watermark(w.png,0,0,0):watermark(w.png,9,9,0)/ > 400 watermark: there is another one
      filters:watermark(w.png,0,0,0):rotate(90)/ > 400 rotate: comes after a watermark
      filters:watermark(http://example.com/w%28.png,0,0,0)/ > \
      watermark=http://example.com/w(.png watermark_position=left-top [watermark]
      filters:nope(1):quality(%2050%20)/ > quality=50 [nope]
      70000x5/ > 400 ExF: a side has at most 65535 pixels
      http://example.com/ > url=http://example.com/a.jpg
      /unsafe/http%3A%2F%2Fexample.com%2Fa%20b.jpg%3Fx%3D1%26y%3D%25 > \
      url=http://example.com/a b.jpg?x=1&y=%
      /unsafe/a%2520b.jpg > url=local:///a%2520b.jpg
      /unsafe/x/../../etc/passwd > 400 a path has no dot segments
      filters:quality(40/ > url=local:///filters%3Aquality%2840/a.jpg
      /unsafe/a%ff.jpg > 400 the source is not percent-encoded UTF-8
      fit-in/9x9/filters:blur(2):fill(red):quality(3)/ > \
      blur=1.289743 quality=3 w=9 h=9 fit=contain background=ff0000ff
      trim:bottom-right/fit-in/9x9/smart/filters:nope(1):quality(x):blur(2):noise(3):strip_icc()/ > \
      trim=1 blur=1.289743 w=9 h=9 fit=inside [trim trim smart nope quality noise strip_icc]
      """)
  }

  @Test func `imagor's addresses`() {
    kit(.imagor).expect(
      """
      300x200/smart/ > w=300 h=200 fit=cover position=attention enlarge=1
      fit-in/100x100/10x5/filters:fill(none)/ > \
      w=100 h=100 fit=contain pad=5,10,5,10 background=00000000
      fit-in/100x210/10x20:15x3/filters:rotate(90):fill(yellow)/ > \
      rotate=270 w=210 h=100 fit=contain flatten=1 pad=15,3,10,20 background=ffff00ff
      fit-in/stretch/100x100/ > w=100 h=100 fit=fill enlarge=1
      0.1x0.2:0.89x0.72/ > crop=0.1,0.2,0.79,0.52
      0.1x0.2:1.0x1.0/-100x30/filters:focal(0.325x0.5)/ > \
      flip=h crop=0.9,0.8,right-top,0.1,0.2 w=100 h=30 fit=cover position=0.75,0.375 enlarge=1
      50x50:0x0/ > =
      100x30/filters:focal(589x401:1000x814)/ > w=100 h=30 fit=cover position=795px,608px enlarge=1
      1x2:30x40/100x30/filters:focal(0.5x0.5)/ > 400 focal: in shares, and AxB:CxD in pixels
      100x30/filters:focal(0.1x0.1:0.3x0.3):focal(5x5:9x9)/ > \
      400 focal: both in pixels and in shares
      100x30/filters:focal(1,0.25):rotate(90)/ > \
      rotate=270 w=30 h=100 fit=cover position=0.25,0 enlarge=1
      200xorig/ > url=local:///200xorig/a.jpg
      /unsafe//fit-in/200x210/a.jpg > w=200 h=210 fit=inside
      /unsafe/b64:aHR0cHM6Ly9leGFtcGxlLmNvbS9hLmpwZz94PTE > url=https://example.com/a.jpg?x=1
      100x100/b64:aHR0cHM6Ly9leGFtcGxlLmNvbS9hLmpwZz94PTE=/ > \
      url=https://example.com/a.jpg?x=1 w=100 h=100 fit=cover enlarge=1
      /unsafe/b64:!!! > 400 b64: is not followed by base64url
      /unsafe/100x100/color:red > 400 color: images without a source are not made
      filters:format(jpg)/ > format=jpeg background=000000
      filters:format(jp2)/ > 400 format: jp2 is not written
      filters:format(webp):lossless()/ > format=webp lossless=1
      filters:format(jpeg):lossless()/ > format=jpeg background=000000
      filters:autojpg()/ > format=jpeg background=000000
      filters:format(webp):autojpg()/ > format=webp
      filters:blur(5)/ > blur=5
      filters:blur(0.1)/ > =
      filters:sharpen(3)/ > sharpen=3 [sharpen]
      filters:hue(290):saturation(100)/ > hue=290 saturation=2 [saturation]
      filters:pixelate()/ > pixelate=10
      filters:round_corner(60,30,cyan)/ > radius=60 background=00ffffff [round_corner]
      100x200/left/filters:orient(90):rotate(90)/ > \
      rotate=180 w=200 h=100 fit=cover position=bottom enlarge=1
      filters:page(3)/ > frame=2 [page]
      filters:max_frames(1)/ > animated=0 [max_frames]
      filters:attachment(my%20file.jpg)/ > download=1 filename=my file.jpg
      filters:raw()/ > pass=all
      filters:trim(50,bottom-right)/ > trim=50 [trim trim]
      trim:top-right:20/ > trim=20 [trim trim]
      filters:proportion(10)/ > w=10% h=10% fit=fill [proportion]
      filters:proportion(9999):proportion(-10):proportion()/ > [proportion]
      filters:padding(red,10)/ > 400 padding: imagor does not document it; GxH:IxJ is served
      filters:redact()/ > 400 redact: nothing is detected and hidden
      filters:label(x,1,2,3)/ > 400 label: no text is drawn
      filters:image(/100x100/b.png,1,2)/ > 400 image: images are not put together
      filters:crop(1,2,3,4)/ > 400 crop: only the source is cropped, not the result
      /unsafe/filters:dpi(300):to_colorspace(p3):strip_metadata()/a.pdf > \
      url=local:///a.pdf [dpi to_colorspace strip_metadata]
      meta/filters:blurhash(4,3):thumbhash():avgcolor()/ > \
      (description) [meta blurhash thumbhash avgcolor]
      filters:watermark(b64:dy5wbmc,left,bottom,30)/ > \
      watermark=local:///w.png watermark_position=left-bottom watermark_opacity=0.7 [watermark]
      filters:watermark(w.png)/ > watermark=local:///w.png watermark_position=left-top [watermark]
      /unsafe/filters:watermark(s.com/filters:label(abc)/w.png,0,0,0):grayscale()/a.jpg > \
      watermark=local:///s.com/filters%3Alabel%28abc%29/w.png watermark_position=left-top grayscale=1 [watermark grayscale]
      """)
  }
}
