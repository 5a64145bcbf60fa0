// CloudflareTests: the door of Cloudflare.

import Core
import Testing

@testable import Doors

@Suite struct CloudflareDoorTests {
  static let kit: DoorKit = {
    var options = DoorOptions()
    options.baseURL = "https://site.example"
    options.allowedSources = ["https://other.example/"]
    options.presets = ["thumb": "w=100,h=100,fit=cover"]
    return DoorKit(
      door: CloudflareDoor(options), form: "/cdn-cgi/image/*/a.jpg",
      constants: [
        "scale": "1", "url": "https://site.example/a.jpg", "format": "source", "pass": "vector",
        "q_jpeg": "85", "q_webp": "85",
      ])
  }()

  @Test func `reads options`() {
    Self.kit.expect(
      """
      width=80,quality=75 > w=80 quality=75 no-q_jpeg no-q_webp | w=80,h=60 > w=80 h=60
      width=auto,dpr=2 > w=auto scale=2 [width=auto] | w=100,dpr=1.5 > w=100 scale=1.5
      fit=scale-down,w=500,h=400 > w=500 h=400 | fit=contain,w=500,h=400 > w=500 h=400 enlarge=1
      fit=cover,w=500,h=400 > w=500 h=400 fit=cover enlarge=1
      fit=crop,w=500,h=400 > w=500 h=400 fit=cover [fit=crop]
      fit=aspect-crop,w=500,h=400 > w=500 h=400 fit=cover-down
      fit=pad,w=500,h=400,background=%23ff0000 > w=500 h=400 background=ff0000 fit=contain enlarge=1
      fit=squeeze,w=500,h=400 > w=500 h=400 fit=fill enlarge=1
      fit=scale-up,w=500 > 400 fit='scale-up': nothing here only enlarges
      fit=fill,w=500 > 400 fit='fill': one of scale-down, contain, cover, aspect-crop, pad, squeeze
      g=auto,fit=cover,w=9,h=9 > position=attention w=9 h=9 fit=cover enlarge=1 [g=auto]
      gravity=face,zoom=0.5,fit=cover,w=9,h=9 > \
      position=faces w=9 h=9 fit=cover enlarge=1 [gravity=face zoom]
      gravity=left,fit=cover,w=9,h=9 > position=left w=9 h=9 fit=cover enlarge=1
      gravity=center,w=9 > w=9 | g=0.5x0.33,w=9 > position=0.5,0.33 w=9
      gravity=0x1,w=9 > position=0.0,1.0 w=9
      gravity=2x1,w=9 > 400 gravity='2x1': a number from 0 to 1
      gravity=side > 400 gravity='side': one of left, right, top, bottom, center
      anim=false > animated=0 | anim=true > = | background=rebeccapurple > background=663399
      background=rgb(240,40,145),w=9 > background=f02891 w=9
      background=rgb%28240%2C40%2C145%29 > background=f02891
      background=rgba(255%20255%200%20%2F%2050%25) > background=ffff0080
      background=hsl(120,100%,25%) > background=008000
      background=hsla(-120deg%20100%25%2050%25%20%2F%200.5) > background=0000ff80
      background=transparent > background=00000000 | background=%23f80c > background=ff8800cc
      background=nocolour > 400 background='nocolour': a colour | blur=50 > blur=50 [blur]
      blur=0 > [blur] | blur=251 > 400 blur='251': a number from 0 to 250
      border.width=3 > 400 border.width='3': of Workers only; /image has pad
      brightness=0.5,contrast=2,saturation=0,gamma=1.5 > \
      brightness=0.5 contrast=2 saturation=0 gamma=1.5
      brightness=0,contrast=1,saturation=1,gamma=0 > = | brightness=100 > brightness=10
      compression=fast,f=auto > format=jpeg [compression]
      compression=fast,f=png > format=png [compression]
      dpr=0 > 400 dpr='0': a number from 0.01 to 10
      dpr=nan > 400 dpr='nan': a number from 0.01 to 10 | flip=h > flip=h | flip=hv > flip=hv
      flip=h,rotate=90 > rotate=90 flip=v | flip=v,rotate=270 > rotate=270 flip=h
      flip=h,rotate=180 > rotate=180 flip=h | flip=hv,rotate=90 > rotate=90 flip=hv
      rotate=360 > = | rotate=45 > 400 rotate='45': one of 90, 180, 270, 0, 360
      f=auto > format=auto | f=avif > format=avif
      f=webp,q=100 > format=webp quality=100 lossless=1 no-q_jpeg no-q_webp
      f=jpeg > format=jpeg progressive=1 | f=baseline-jpeg > format=jpeg | f=png > format=png
      f=json > (description) [f=json]
      f=gif > 400 f='gif': one of auto, avif, webp, jpeg, baseline-jpeg, png | metadata=none > =
      metadata=keep > strip=0 | metadata=copyright > [metadata=copyright]
      onerror=redirect > (redirect) | onerror=no > 400 onerror='no': one of redirect
      q=high > quality=90 no-q_jpeg no-q_webp [q=high]
      quality=medium-high > quality=80 no-q_jpeg no-q_webp [quality=medium-high]
      quality=medium-low > quality=65 no-q_jpeg no-q_webp [quality=medium-low]
      quality=low > quality=50 no-q_jpeg no-q_webp [quality=low]
      quality=101 > 400 quality='101': a whole number from 1 to 100
      segment=foreground > 400 segment='foreground': backgrounds are not recognized here
      sharpen=1 > sharpen=1 [sharpen] | sharpen=0.01 > sharpen=0.1 [sharpen]
      sharpen=11 > 400 sharpen='11': a number from 0 to 10 | scq=50 > [scq]
      slow-connection-quality=low > [slow-connection-quality]
      trim=20;0;0;10 > crop=10,20,10000000,10000000
      trim=10;0;0;20,dpr=2 > scale=2 crop=40,20,10000000,10000000 | trim=0;0;0;0 > =
      trim=20;30;20;0 > 400 trim: cutting right and bottom needs the source's size
      trim=1;2;3 > 400 trim='1;2;3': 4 numbers
      trim.left=30,trim.top=40,trim.width=678,trim.height=500 > crop=30,40,678,500
      trim.width=0 > 400 trim.width='0': a whole number from 1 to 100000
      trim.left=3,rotate=90 > 400 trim: not together with rotate or flip
      trim=border > trim=10 [trim=border]
      trim.border.color=red > 400 trim.border.color='red': of Workers only
      upscale=generate > 400 upscale='generate': images are not generated here
      upscale=interpolate > = | width=0 > 400 width='0': a whole number from 1 to 65535
      width=-1 > 400 width='-1': a whole number from 1 to 65535
      width=70000 > 400 width='70000': a whole number from 1 to 65535
      width=1e2 > 400 width='1e2': a whole number from 1 to 65535
      w=80,unknown=1 > w=80 [unknown] | width=80,width=90 > w=90
      width%3D80%2Cheight%3D40 > w=80 h=40
      /cdn-cgi/image//a.jpg > 400 at least one option is required
      /cdn-cgi/image/a.jpg > 400 the address has no source
      /cdn-cgi/image/w=80/dir/b%20c.jpg?v=1&w=2 > w=80 url=https://site.example/dir/b%20c.jpg?v=1&w=2
      /cdn-cgi/image/w=80/https://other.example/b.jpg?v=1 > w=80 url=https://other.example/b.jpg?v=1
      /cdn-cgi/image/w=80/https:/other.example/b.jpg > w=80 url=https://other.example/b.jpg
      /cdn-cgi/image/w=80/https%3A%2F%2Fother.example%2Fb.jpg > w=80 url=https://other.example/b.jpg
      /cdn-cgi/image/w=80,onerror=redirect/https://other.example/b.jpg > \
      w=80 url=https://other.example/b.jpg [onerror]
      /cdn-cgi/image/w=80/https://evil.example/b.jpg > 403 no beginning in allow_sources is that of the source
      /cdn-cgi/image/w=80/ftp://other.example/b.jpg > 403 the scheme must be http or https
      /cdn-cgi/image/w=80/cdn-cgi/image/w=9/b.jpg > 508 the source is a resized image
      /cdn-cgi/image/w=80/ > 403 the scheme must be http or https
      /cdn-cgi/imagedelivery/acc/id/thumb > \
      format=auto w=100 h=100 fit=cover enlarge=1 url=https://site.example/id
      /cdn-cgi/imagedelivery/acc/dir/id.png/w=128,rotate=90 > \
      format=auto w=128 rotate=90 url=https://site.example/dir/id.png
      /cdn-cgi/imagedelivery/acc/id/w=128,f=webp > w=128 format=webp url=https://site.example/id
      /cdn-cgi/imagedelivery/acc/id/other > 404 the variant 'other' is not among the presets
      /cdn-cgi/imagedelivery/acc/id > 404 the path is ACCOUNT/ID/VARIANT
      /cdn-cgi/imagedelivery/acc/id/thumb?sig=0&exp=1 > \
      403 sig: signatures of private images are not verified here
      """)
  }

  @Test func `refuses with Cloudflare's code`() {
    let refusal = Self.kit.refusal("width=0")
    #expect(refusal?.status == 400)
    #expect(refusal?.fields == [HeaderField("Cf-Resized", value: "err=9401")].compactMap { $0 })
    #expect(refusal?.body.hasPrefix("ERROR 9401: ") == true)
    let loop = Self.kit.refusal("/cdn-cgi/image/w=8/https://other.example/cdn-cgi/image/w=9/b.jpg")
    #expect(loop?.fields.first?.value == "err=9403")
  }

  @Test(arguments: [
    (ImageError.sourceNotFound(status: 410), 404, 9404), (.sourceError(status: 401), 401, 9408),
    (.sourceError(status: 500), 502, 9509), (.sourceTimeout(detail: ""), 504, 9504),
    (.sourceUnreachable(detail: ""), 504, 9510), (.sourceTooLarge(limit: 9), 413, 9402),
    (.unsupportedFormat(detail: ""), 415, 9412), (.tooManyPixels(pixels: 9, limit: 8), 403, 9413),
    (.undecodable(detail: ""), 422, 9516), (.tooManyRedirects(limit: 4), 400, 9421),
    (.draining, 503, 9522), (.internal(detail: ""), 500, 9523), (.imagingTimeout, 504, 9529),
    (.forbiddenSource(reason: "", detail: ""), 403, 9401), (.missingParameter("w"), 400, 9401),
  ])
  func answersAsCloudflare(_ error: ImageError, status: Int, code: Int) {
    let answer = Self.kit.door.answer(to: error)
    #expect(answer.status == status)
    #expect(answer.fields.first?.value == "err=\(code)")
  }
}
