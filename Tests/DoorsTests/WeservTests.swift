// WeservTests: the door of weserv.

import Core
import Testing

@testable import Doors

@Suite struct WeservDoorTests {
  static let kit = DoorKit(
    door: WeservDoor(DoorOptions()), form: "/?url=a.example/a.jpg&*",
    constants: [
      "scale": "1", "url": "http://a.example/a.jpg", "format": "source", "animated": "0",
    ])

  @Test func `reads parameters`() {
    Self.kit.expect(
      """
      w=300 > w=300 enlarge=1 | h=144&dpr=2 > h=144 scale=2 enlarge=1
      w=50%&h=25.5% > w=50% h=25.5% enlarge=1 | dpr=2 > = | w=300&dpr=9 > w=300 enlarge=1 [dpr]
      w=0&h=-3 > [w h] | w=9&h=8&fit=inside > w=9 h=8 enlarge=1
      w=9&h=8&fit=outside > w=9 h=8 fit=outside enlarge=1
      w=9&h=8&fit=cover > w=9 h=8 fit=cover enlarge=1 | w=9&h=8&fit=fill&we > w=9 h=8 fit=fill
      w=9&h=8&fit=contain > w=9 h=8 fit=contain enlarge=1 background=00000000
      w=9&h=8&fit=contain&cbg=80FF6600 > w=9 h=8 fit=contain enlarge=1 background=ff660080
      w=9&h=8&fit=contain&cbg=white&bg=black > w=9 h=8 fit=contain enlarge=1 background=ffffff [bg bg]
      w=9&fit=nope > w=9 enlarge=1 [fit] | w=9&we=false > w=9 enlarge=1
      w=9&we=maybe > w=9 enlarge=1 [we] | w=9&h=8&t=fit > w=9 h=8
      w=9&h=8&t=fitup > w=9 h=8 enlarge=1 | w=9&h=8&t=square > w=9 h=8 fit=cover enlarge=1
      w=9&h=8&t=squaredown > w=9 h=8 fit=cover | w=9&h=8&t=absolute > w=9 h=8 fit=fill enlarge=1
      w=9&h=8&t=letterbox > w=9 h=8 fit=contain enlarge=1 background=00000000
      a=top-left > position=left-top | a=br > position=right-bottom | a=center > =
      a=attention > position=attention | a=entropy > position=entropy
      a=focal&fpx=0.6 > position=0.6,0.5 | a=focal&fpy=0.45 > position=0.5,0.45
      a=crop-22-0 > position=0.22,0.0 | a=focal-0.5-200 > [a]
      cx=680&cy=500&cw=300&ch=200 > crop=680,500,300,200 | crop=20,21,2,3 > crop=2,3,20,21
      w=9&crop=20,21,2,3 > 400 cx, cy, cw, ch: after a resize; with precrop they work
      w=9&cx=1&precrop > w=9 enlarge=1 crop=1,0,10000000,10000000 | cw=0 > [cw] | trim > trim=10
      trim=10 > trim=10 | trim=255 > [trim] | trim=20&tbg=3F00 > trim=20 trim_color=ff0000
      tbg=red > =
      w=9&h=9&fit=cover&mask=circle > w=9 h=9 fit=cover enlarge=1 radius=max background=00000000
      w=9&h=8&fit=cover&mask=circle > \
      400 mask: circle needs w = h with fit=cover, contain or fill, without we
      w=9&h=9&fit=fill&mask=ellipse&mtrim&mbg=red > \
      w=9 h=9 fit=fill enlarge=1 radius=ellipse background=ff0000 [mtrim]
      mask=heart > 400 mask='heart': only a circle or an ellipse | mask=none > [mask]
      shape=ellipse > radius=ellipse background=00000000 | flip > flip=v | flop > flip=h
      flip&flop=1 > flip=hv | flip=0 > = | ro=90 > rotate=90 | ro=-450 > rotate=270
      ro=45&rbg=red > rotate=45 background=ff0000 | ro > = | ro=360 > = | ro=1e999 > [ro]
      bg=white > background=ffffff [bg] | bg=CCC > background=cccccc [bg]
      bg=5CCC > background=cccccc55 [bg] | bg=%2355CCCCCC > background=cccccc55 [bg]
      bg=ffCCCCCC > background=cccccc [bg] | bg=ZZZ > [bg]
      output=jpg > format=jpeg background=000000 | blur=5 > blur=5 | blur > blur=0.5 [blur=]
      blur=0.1 > blur=0.3 | blur=101 > [blur] | bri=-30 > brightness=0.7 [bri]
      con=25 > contrast=1.25 | con=0 > = | con=200 > [con] | filt=greyscale > grayscale=1
      filt=sepia > sepia=1 [filt=sepia] | filt=negate > negate=1
      filt=duotone > 400 filt='duotone': two colours are not mapped here | filt=x > [filt]
      gam=3 > gamma=3 | gam > gamma=2.2 | gam=4 > [gam] | mod=2 > brightness=2
      mod=2,0.5,-90 > brightness=2 saturation=0.5 hue=270 | mod=-1 > [mod]
      sat=0.5 > saturation=0.5 | hue=450 > hue=90 | hue=-30.4 > hue=330
      sharp=3 > sharpen=3 [sharp] | sharp > sharpen=0.5 [sharp=]
      sharp=true > sharpen=0.5 [sharp=true] | sharp=0.5,2.5,1.5 > sharpen=1.5 [sharp]
      sharp=3&sharpf=1&sharpj=2 > sharpen=3 [sharp sharpf sharpj]
      tint=red > tint=ff000080 [tint] | af&l=9&ll > lossless=1 [af l]
      encoding=base64 > 400 encoding='base64': a data URL is text; here are images only
      encoding=hex > = | maxage=31d > maxage=2678400 [maxage]
      maxage=1y > maxage=31536000 [maxage] | maxage=2y > [maxage] | maxage=1h > [maxage]
      default=1 > [default] | default=x.example/b.jpg > [default]
      errorredirect=x > [errorredirect] | filename=test1 > filename=test1
      filename=a.b > [filename] | il > progressive=1 | n=-1 > no-animated | n=3 > no-animated [n]
      n=1 > = | page=2&n=-1 > frame=2 no-animated | page=-1 > [page=-1] | page=-2 > [page=-2]
      loop=1 > [loop] | output=json > (description) [output=json]
      output=webp&q=20 > format=webp quality=20 | output=avif > format=avif
      output=bmp > [output] | q=0 > [q] | q=101 > [q] | v=1&start=red&stop=blue > [start stop]
      w=9&w=10 > w=9 enlarge=1
      /images?url=http://b.example/b.jpg%3Fx%3D1 > url=http://b.example/b.jpg?x=1
      /?url=ssl:b.example/b.jpg > url=https://b.example/b.jpg
      /?url=https:/b.example/b.jpg > url=https://b.example/b.jpg
      /?w=9&url=//b.example/b+c.jpg > w=9 enlarge=1 url=http://b.example/b+c.jpg
      /?url=http:\\\\foobar > 400 url: the scheme must be http or https
      /?url=ftp://b.example/b.jpg > 400 url: the scheme must be http or https
      """)
  }

  @Test func `refuses in JSON`() {
    let refusal = Self.kit.refusal("/?url=ftp://b.example/b.jpg")
    #expect(refusal?.status == 400)
    #expect(refusal?.contentType == "application/json")
    #expect(
      refusal?.body == "{\"status\":\"error\",\"code\":400,\"message\":\"Unable to parse URI\"}")
    #expect("a\"\\\n".json == "\"a\\\"\\\\\\u000a\"")
  }

  @Test func `reads a base and allowed sources`() {
    var options = DoorOptions()
    options.baseURL = "local://"
    let local = DoorKit(door: WeservDoor(options), form: Self.kit.form, constants: [:])
    #expect(local.reading("w=9").contains("url=local:///a.example/a.jpg"))
    options.baseURL = ""
    options.allowedSources = ["http://b.example"]
    let kit = DoorKit(door: WeservDoor(options), form: Self.kit.form, constants: [:])
    #expect(kit.refusal("w=9")?.status == 404)
    #expect(kit.refusal("/?url=b.example/b.jpg") == nil)
  }

  @Test func `answers as weserv`() {
    let door = Self.kit.door
    let missing = door.answer(to: .sourceNotFound(status: 404))
    #expect(missing.status == 404)
    #expect(missing.body.contains("The requested URL returned error: 404"))
    #expect(door.answer(to: .tooManyPixels(pixels: 9, limit: 8)).status == 413)
    #expect(door.answer(to: .sourceTimeout(detail: "")).body.contains("timed out"))
    #expect(door.answer(to: .invalidURL("", reason: "")).status == 400)
  }
}

@Suite struct ColorsTests {
  @Test func `reads CSS`() {
    #expect(Colors.named.count == 148)
    let colors = [
      "red": "ff0000", "ReD": "ff0000", "#abc": "aabbcc", "abcd": "aabbccdd",
      "#11223344": "11223344",
      "#112233ff": "112233", "rgb(100% 0% 50%)": "ff0080", "rgb(300,-5,0)": "ff0000",
      "rgba(1,2,3,0.5)": "01020380", "hsl(0,100%,50%)": "ff0000", "hsl(240 100% 50%)": "0000ff",
      "hsl(60,100%,25%)": "808000", "hsla(0,0%,100%,0)": "ffffff00",
    ]
    for (text, color) in colors { #expect(Colors.css(text) == color, "\(text)") }
    for text in [
      "", "#", "#12345", "rgb()", "rgb(1,2)", "rgb(nan,1,1)", "hsl(1,2,3)", "lab(1 2 3)", "(",
    ] {
      #expect(Colors.css(text) == nil, "\(text)")
    }
    #expect(Colors.argb("80112233") == "11223380")
    #expect(Colors.argb("f123") == "112233")
    #expect(Colors.argb("rgb(1,2,3)") == nil)
  }

  @Test func `reads numbers`() throws {
    for (text, number) in ["0": 0.0, "-1.5": -1.5, ".5": 0.5, "12": 12, "+3": 3] {
      let read = try text.number(in: -100...100)
      #expect(read == number)
    }
    for text in [
      "", ".", "-", "nan", "inf", "1e3", "0x1", "1.2.3", "101", "--1", "1111111111111111111111",
    ] {
      #expect(throws: DoorFault.self) { try text.number(in: -100...100) }
    }
    #expect(1.0.share == "1.0")
  }
}
