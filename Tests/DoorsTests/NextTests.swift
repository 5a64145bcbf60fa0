// NextTests: the door of Next.js.

import Core
import Testing

@testable import Doors

@Suite struct NextDoorTests {
  static let options: DoorOptions = {
    var options = DoorOptions()
    options.baseURL = "https://site.example/"
    options.allowedSources = ["https://*.cdn.example/img/", "https://one.example"]
    options.qualities = [50, 75, 100]
    return options
  }()
  static let kit = DoorKit(
    door: NextDoor(options), form: "/_next/image?url=%2Fa.jpg&*",
    constants: [
      "scale": "1", "url": "https://site.example/a.jpg", "format": "auto", "pass": "animated",
    ])
  static let sourceKit = DoorKit(
    door: NextDoor(options), form: "/_next/image?*&w=640&q=75",
    constants: [
      "scale": "1", "w": "640", "format": "auto", "pass": "animated", "q_jpeg": "75",
      "q_webp": "75", "q_avif": "55",
    ])

  @Test func `reads sizes and qualities`() {
    Self.kit.expect(
      """
      w=640&q=75 > w=640 q_jpeg=75 q_webp=75 q_avif=55 [Accept]
      w=16&q=100 > w=16 q_jpeg=100 q_webp=100 q_avif=80 [Accept]
      w=3840&q=50 > w=3840 q_jpeg=50 q_webp=50 q_avif=30 [Accept]
      q=75&w=640 > w=640 q_jpeg=75 q_webp=75 q_avif=55 [Accept]
      w=640&q=75&dpl=x > w=640 q_jpeg=75 q_webp=75 q_avif=55 [Accept]
      /_next/image/?url=%2Fa.jpg&w=640&q=75 > w=640 q_jpeg=75 q_webp=75 q_avif=55 [Accept]
      /_vercel/image?url=/a.jpg&w=640&q=75 > w=640 q_jpeg=75 q_webp=75 q_avif=55 [Accept]
      /_next/image?w=640&q=75 > 400 "url" parameter is required
      q=75 > 400 "w" parameter (width) is required
      w=&q=75 > 400 "w" parameter (width) is required
      w=640&w=640&q=75 > 400 "w" parameter (width) cannot be an array
      w=-1&q=75 > 400 "w" parameter (width) must be an integer greater than 0
      w=0&q=75 > 400 "w" parameter (width) must be an integer greater than 0
      w=641&q=75 > 400 "w" parameter (width) of 641 is not allowed
      w=99999999999999999999&q=75 > 400 "w" parameter (width) of 9223372036854775807 is not allowed
      w=1e3&q=75 > 400 "w" parameter (width) must be an integer greater than 0
      w=640 > 400 "q" parameter (quality) is required
      w=640&q=75&q=50 > 400 "q" parameter (quality) cannot be an array
      w=640&q=1.5 > 400 "q" parameter (quality) must be an integer between 1 and 100
      w=640&q=0 > 400 "q" parameter (quality) must be an integer between 1 and 100
      w=640&q=101 > 400 "q" parameter (quality) must be an integer between 1 and 100
      w=640&q=80 > 400 "q" parameter (quality) of 80 is not allowed
      /.netlify/images?url=/a.jpg > no-pass
      /.netlify/images?url=/a.jpg&w=50&h=40&fit=cover&position=left&fm=webp&q=80 > \
      w=50 h=40 fit=cover position=left format=webp q_jpeg=80 q_webp=80 q_avif=80 no-pass
      /.netlify/images?url=/a.jpg&w=50&h=40&fit=fill&fm=jpg > w=50 h=40 fit=fill format=jpeg no-pass
      /.netlify/images?url=/a.jpg&w=50&fit=cover > w=50 no-pass
      /.netlify/images?url=/a.jpg&w=50&fit=contain&position=center&fm=avif&q=40 > \
      w=50 format=avif q_jpeg=40 q_webp=40 q_avif=40 no-pass
      /.netlify/images?url=/a.jpg&fm=blurhash > \
      400 "fm" parameter: one of avif, webp, jpg, jpeg, png, gif
      /.netlify/images?url=/a.jpg&w=0 > 400 "w" parameter: a whole number from 1 to 65535
      /.netlify/images?url=/a.jpg&q=101 > 400 "q" parameter: a whole number from 1 to 100
      /.netlify/images?url=/a.jpg&fit=none > 400 "fit" parameter: one of contain, cover, fill
      /.netlify/images?w=50 > 400 "url" parameter is required
      """)
  }

  @Test func `reads sources`() {
    Self.sourceKit.expect(
      """
      url=%2Fa%20b%2Bc.jpg > url=https://site.example/a%20b+c.jpg [Accept]
      url=%2Fa+b.jpg%3Fv%3D2 > url=https://site.example/a%20b.jpg?v=2 [Accept]
      url=%2Ficon.ico > url=https://site.example/icon.ico [Accept]
      url=%2Fmap.bmp%3Fv > url=https://site.example/map.bmp?v [Accept]
      url=https%3A%2F%2Fa.cdn.example%2Fimg%2Fb.jpg > url=https://a.cdn.example/img/b.jpg [Accept]
      url=HTTPS%3A%2Fone.example%2Fb.jpg > url=https://one.example/b.jpg [Accept]
      url=%2Flogo.svg > 400 "url" parameter is valid but image type is not allowed
      url=https%3A%2F%2Fone.example.evil%2Fb.jpg > 400 url: no beginning in allow_sources is that of the source
      url=https%3A%2F%2Fone.example%3A8080%2Fb.jpg > 400 url: no beginning in allow_sources is that of the source
      url=https%3A%2F%2Fevil.example%3Fa.cdn.example%2Fimg%2F > \
      400 url: no beginning in allow_sources is that of the source
      url=https%3A%2F%2Fa.cdn.example%2Fimg%2F%252e%252e%2Fx > \
      400 url: no beginning in allow_sources is that of the source
      url=%2F..%2Fb.jpg > 400 url: a path has no dot segments
      url= > 400 "url" parameter is required
      url=%2Fa.jpg&url=%2Fb.jpg > 400 "url" parameter cannot be an array
      url=%2F%2Fevil.example%2Fb.jpg > 400 "url" parameter cannot be a protocol-relative URL (//)
      url=a.jpg > 400 "url" parameter is invalid
      url=ftp%3A%2F%2Fone.example%2Fb.jpg > 400 "url" parameter is invalid
      url=local%3A%2F%2F%2Fetc > 400 "url" parameter is invalid
      url=%2F_next%2Fimage%3Furl%3D%2Fa > 400 "url" parameter cannot be recursive
      url=%2F%255fnext%2Fimage%2F > 400 "url" parameter cannot be recursive
      """)
  }

  @Test func `refuses with the sentences of Next.js`() {
    let refusal = Self.kit.refusal("w=641&q=75")
    #expect(refusal?.status == 400)
    #expect(refusal?.contentType == "text/plain")
    #expect(refusal?.body == "\"w\" parameter (width) of 641 is not allowed")
    let forbidden = Self.sourceKit.refusal("url=https%3A%2F%2Fevil.example%2F")
    #expect(forbidden?.body == "\"url\" parameter is not allowed")
    let long = Self.sourceKit.refusal("url=%2F" + String(repeating: "a", count: 3_072))
    #expect(long?.body == "\"url\" parameter is too long")
    #expect(Self.sourceKit.refusal("url=%2F" + String(repeating: "a", count: 3_071)) == nil)
    let user = Self.sourceKit.refusal("url=https%3A%2F%2Fu%3Ap%40one.example%2Fb.jpg")
    #expect(user?.body == "\"url\" parameter is invalid")
  }

  @Test func `serves vectors where they are allowed`() {
    var options = Self.options
    options.allowsVectors = true
    let kit = DoorKit(door: NextDoor(options), form: Self.sourceKit.form, constants: [:])
    #expect(kit.reading("url=%2Flogo.svg").contains("pass=animated,vector"))
  }

  @Test func `reads allowed widths and a world without base`() {
    var options = DoorOptions()
    options.widths = [100]
    let kit = DoorKit(door: NextDoor(options), form: Self.kit.form, constants: [:])
    #expect(kit.reading("w=640&q=75") == "400 \"w\" parameter (width) of 640 is not allowed")
    #expect(kit.reading("w=100&q=76") == "400 \"q\" parameter (quality) of 76 is not allowed")
    #expect(kit.reading("w=100&q=75") == "400 url: without base_url a source needs a scheme")
    options.baseURL = "local:///public"
    let local = DoorKit(
      door: NextDoor(options), form: "/_next/image?url=%2Fa.jpg%3Fv%3D1&*", constants: [:])
    #expect(local.reading("w=100&q=75").contains("url=local:///public/a.jpg "))
  }

  @Test func `answers as Next.js`() {
    let door = Self.kit.door
    #expect(door.answer(to: .sourceNotFound(status: 410)).status == 410)
    #expect(door.answer(to: .sourceError(status: 503)).status == 503)
    #expect(door.answer(to: .tooManyRedirects(limit: 3)).status == 508)
    let late = door.answer(to: .sourceTimeout(detail: ""))
    #expect(late.status == 504)
    #expect(late.body == "\"url\" parameter is valid but upstream response timed out")
    #expect(door.answer(to: .unsupportedFormat(detail: "")).status == 400)
  }
}
