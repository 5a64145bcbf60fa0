// ImgixTests: the door of imgix.

import Core
import Testing

@testable import Doors

@Suite struct ImgixDoorTests {
  static func door(_ keys: [String] = []) -> ImgixDoor {
    var options = DoorOptions()
    (options.baseURL, options.keys) = ("https://o.example/i/", keys.map { Array($0.utf8) })
    return ImgixDoor(options)
  }
  static let kit = DoorKit(
    door: door(), form: "/a.jpg?*",
    constants: ["scale": "1", "url": "https://o.example/i/a.jpg", "format": "source"])

  static let no = "nothing here draws, blends, styles or generates so"

  @Test func `sizes and crops`() {
    Self.kit.expect(
      """
      w=300 > w=300 enlarge=1 | width=300&h=200 > w=300 h=200 enlarge=1 | h=0.5 > h=50% enlarge=1
      w=1.0 > w=100% enlarge=1 | w=1 > w=1 enlarge=1 | w=9000 > w=8192 enlarge=1 | w=x > [w]
      dpr=2 > = | dpr=0.5&w=200 > w=200 enlarge=1 scale=0.5 | dpr=9&w=2 > w=2 enlarge=1 scale=5
      fit=clip&w=9&h=8 > w=9 h=8 enlarge=1 | fit=crop&w=9&h=8 > w=9 h=8 fit=cover enlarge=1
      fit=facearea,fill&w=9&h=8 > w=9 h=8 fit=cover enlarge=1 position=faces crop=faces,0 [fit=facearea]
      fit=clamp&w=9&h=8 > w=9 h=8 fit=contain enlarge=1 background=ffffff00 [fit=clamp]
      fit=fill&fill=solid&w=9&h=8 > w=9 h=8 fit=contain enlarge=1 background=ffffff | ar=0:1 > [ar]
      fit=fill&fill=blur&w=9&h=8 > w=9 h=8 fit=contain enlarge=1 background=ffffff00 [fill=blur]
      fit=fillmax&w=9&h=8 > w=9 h=8 fit=contain background=ffffff00 [fit=fillmax] | ar=2 > [ar]
      fit=max&w=3000 > w=3000 | fit=min&w=9&h=8 > w=9 h=8 fit=cover-down | fit=crop&max-w=9 > w=9
      fit=scale&w=9&h=8 > w=9 h=8 fit=fill enlarge=1 | fit=scale&w=9 > w=9 enlarge=1 | max-w=9 > =
      fit=no&w=9 > w=9 enlarge=1 [fit] | ar=9:1&fit=crop > ar=9 fit=cover enlarge=1
      ar=9:3&fit=fill > ar=3 fit=contain enlarge=1 background=ffffff00 | ar=9:1&w=9 > w=9 enlarge=1
      ar=2:1&w=280&fit=crop > w=280 ar=2 fit=cover enlarge=1 | crop=bottom&w=9 > w=9 enlarge=1
      fit=crop&h=200&max-w=200 > w=200 min-h=200 h=200 enlarge=1 | rect=1,2,0,4 > [rect]
      fit=crop&w=300&max-h=300 > w=300 h=300 min-w=300 enlarge=1 | rect=1 > [rect]
      fit=crop&h=200&min-w=300 > min-w=300 h=200 enlarge=1 | rect=10,20,300,400 > crop=10,20,300,400
      fit=crop&w=300&h=200&max-w=100&min-h=250 > w=100 h=250 fit=cover enlarge=1
      fit=crop&h=9&max-w=9&ar=2:1 > 400 max-, min-: not together with ar
      fit=crop&crop=top,left&w=9 > w=9 fit=cover enlarge=1 position=left-top
      fit=crop&crop=faces,top,right&w=9 > w=9 fit=cover enlarge=1 position=faces [crop]
      fit=crop&crop=faces&w=9 > w=9 fit=cover enlarge=1 position=faces [crop=faces]
      fit=crop&crop=edges&w=9 > w=9 fit=cover enlarge=1 position=faces [crop]
      fit=min&crop=entropy&w=9 > w=9 fit=cover-down position=entropy
      fit=crop&crop=center&w=9 > w=9 fit=cover enlarge=1 position=center
      fit=crop&crop=focalpoint&fp-x=0.25&w=9 > w=9 fit=cover enlarge=1 position=0.25,0.5
      fit=crop&crop=focalpoint&fp-z=2&rect=1,2,3,4 > 400 fp-z: not together with rect
      rect=0.1,0.1,0.5,1.0 > crop=0.1,0.1,0.5,1.0
      rect=center,middle,600,400 > crop=600,400,center,0,0
      rect=right,20,600,full > crop=600,0,right-top,0,20
      fit=facearea&faceindex=2&facepad=1.5&w=9&h=8 > \
      w=9 h=8 fit=cover enlarge=1 position=faces crop=faces,0.5 [fit=facearea faceindex]
      fit=fill&fill=solid&fill-color=orange&w=9&h=8 > \
      w=9 h=8 fit=contain enlarge=1 background=ffa500
      fit=crop&crop=focalpoint&fp-x=0.1&fp-y=0.4&fp-z=2&w=9 > \
      w=9 fit=cover enlarge=1 crop=0.5,0.5,fp,0.1,0.4 position=0.2,0.5
      """)
  }

  @Test func `turns, pads and masks`() {
    Self.kit.expect(
      """
      flip=h > flip=h | flip=vh > flip=hv | rot=0 > = | rot=90 > rotate=270 [rot]
      rot=45 > 400 rot='45': 90, 180 or 270 only | orient=6 > orient=0 rotate=90
      orient=270 > orient=0 rotate=270 | orient=1 > orient=0 | orient=5 > orient=0 flip=h rotate=90
      orient=2&rot=90 > orient=0 flip=v rotate=270 [rot] | orient=9 > [orient]
      orient=2&flip=h > orient=0 | orient=8&rot=90 > orient=0 rotate=180 [rot]
      trim=auto > trim=10 [trim] | trim=alpha > trim=1 [trim] | trim-md=3 > [trim-md]
      trim=color&trim-color=f00&trim-tol=7 > trim=7 trim_color=ff0000 [trim] | border=10 > [border]
      bg=80FFFFFF > background=ffffff80 flatten=1 | pad=20&w=40 > 400 pad: nothing remains of w
      pad=20&bg=f00 > pad=20,20,20,20 background=ff0000 flatten=1
      pad=20&pad-top=5&w=90&h=50 > pad=5,20,20,20 w=50 h=25 enlarge=1 background=ffffff00
      border=10,FFCC33&border-left=0 > pad=10,10,10,0 background=ffcc33 [border]
      border=5,red&bg=blue > pad=5,5,5,5 background=ff0000 flatten=1 [border bg]
      mask=ellipse&fm=png > radius=ellipse background=ffffff00 format=png
      mask=corners&corner-radius=9&mask-bg=red > radius=9 background=ff0000
      mask=corners&w=100&h=50 > w=100 h=50 enlarge=1 radius=10 background=ffffff00
      mask=corners > 400 mask: without corner-radius, corners need w and h
      mask=/m.png > 400 mask='/m.png': images are no masks here
      """)
  }

  @Test func `styles and writes`() {
    Self.kit.expect(
      """
      bri=-30 > brightness=0.7 [bri] | con=30 > contrast=1.3 [con] | con=0 > [con] | nr=1 > [nr]
      gam=20 > gamma=1.2 [gam] | exp=20 > brightness=1.2 [exp] | hue=-30 > hue=330 [hue] | px=0 > =
      sat=-100 > saturation=0 [sat] | vib=50 > saturation=1.5 [vib] | invert=true > negate=1
      sharp=20 > sharpen=2 [sharp] | usm=20&usmrad=3 > sharpen=2.5 [usm usmrad] | px=-1 > [px]
      blur=50 > blur=5 [blur] | blur=1e999 > [blur] | px=10 > pixelate=10 | shad=0 > = | auto=x > =
      sepia=80 > sepia=0.8 [sepia] | monochrome=444 > grayscale=1 [monochrome] | fm=bmp > [fm]
      shad=5 > 400 shad='5': \(Self.no) | auto=format > format=auto | fm=png8 > format=png [fm=png8]
      auto=compress,format > q_jpeg=45 format=auto [auto=compress] | chromasub=420 > chroma=420
      auto=compress&auto=enhance > q_jpeg=45 [auto=compress auto=enhance] | cs=srgb > =
      fm=jpg > format=jpeg progressive=1 | fm=pjpg&jpg-progressive=false > format=jpeg progressive=0
      fm=webp&lossless=1&q=20 > lossless=1 quality=20 format=webp | cs=tinysrgb > [cs]
      fm=json > (description) [fm=json] | chromasub=422 > chroma=444 [chromasub=422]
      fm=mp4 > 400 fm='mp4': \(Self.no) | colorquant=16 > colours=16 [colorquant] | dl > download=1
      ch=Width,DPR > [ch] | dl=my%20file.jpg > download=1 filename=my file | frame=3 > frame=2
      dl=a/b > download=1 [dl] | rasterize-bypass=true > pass=vector | page=1 > frame=0
      loop=2 > [loop] | txt64=SGk > 400 txt='Hi': \(Self.no) | w64=MzAw > w=300 enlarge=1
      txt-size=9 > [txt-size] | txt64=%2B > 400 txt64: the value is not base64url
      nothing64=%2B&unknown=1 > = | blend=red > 400 blend='red': \(Self.no)
      mark=/l.png&mark-tile=grid > watermark_repeat=1 watermark=https://o.example/i/l.png [mark]
      w=9&w=8 > w=9 enlarge=1 | upscale=true > 400 upscale='true': \(Self.no)
      mark=https://x.example/l.png&mark-align=bottom,left&mark-alpha=50&mark-w=0.2 > \
      watermark_opacity=0.5 watermark_scale=0.2 watermark_position=left-bottom \
      watermark=https://x.example/l.png [mark] | mark-w=0.2&mark-align=top > =
      """)
  }

  @Test func `takes paths and web addresses`() {
    for (path, url) in [
      "/x/y%20z.png": "https://o.example/i/x/y%20z.png",
      "/http%3A%2F%2Fb.example%2Fj.png%3Fv%3D1": "http://b.example/j.png?v=1",
      "/https:/b.example/j.png": "https://b.example/j.png",
    ] {
      #expect(Self.kit.reading(path + "?s=1").contains("url=" + url), "\(path)")
    }
    #expect(Self.kit.refusal("/..%2Fa.jpg?")?.status == 403)
    let proxy = ImgixDoor(DoorOptions())
    #expect(throws: DoorAnswer.self) { try proxy.translate(DoorAddress(path: "/a.jpg")) }
  }

  @Test func `verifies signatures`() throws {
    let kit = DoorKit(door: Self.door(["other", "FOO123bar"]), form: "*", constants: [:])
    let signed = "/users/1.png?w=400&h=300&s=c7b86f666a832434dd38577e38cf86d1"
    #expect(kit.refusal(signed) == nil)
    #expect(try kit.door.translate(kit.address(signed)).isSigned)
    let proxied = "/http%3A%2F%2Favatars.com%2Fjohn-smith.png?s=493a52f008c91416351f8b33d4883135"
    #expect(kit.refusal(proxied) == nil)
    let bare = HMAC.md5Hex(of: Array("FOO123bar/a.png".utf8))
    #expect(kit.refusal("/a.png?s=" + bare) == nil)
    for address in ["/a.png", signed + "&w=1", "/a.png?s=" + bare + "&w=400"] {
      #expect(kit.refusal(address)?.status == 403, "\(address)")
    }
    for index in 1..<signed.utf8.count {
      var bytes = Array(signed.utf8)
      bytes[index] ^= 1
      #expect(kit.refusal(String(decoding: bytes, as: UTF8.self))?.status == 403)
    }
  }

  @Test func `answers as imgix`() throws {
    let door = Self.kit.door
    let translation = try door.translate(Self.kit.address("expires=1500000000"))
    #expect(translation.expiry == UnixTime(seconds: 1_500_000_000))
    #expect(door.answer(to: .expiredSignature(1)).status == 404)
    #expect(door.answer(to: .unsupportedFormat(detail: "")).status == 422)
    #expect(door.answer(to: .sourceTooLarge(limit: 1)).contentType == "text/plain")
  }
}
