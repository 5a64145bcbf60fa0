// ImgproxyTests: the addresses of imgproxy become Pictor's own parameters, or imgproxy's refusals.

import Core
import Testing

@testable import Doors

@Suite struct ImgproxyTests {
  /// A door with presets, changed as a test needs it.
  static func kit(
    _ form: String = "/_/*/plain/local:///a.jpg", _ change: (inout DoorOptions) -> Void = { _ in }
  ) -> DoorKit {
    var options = DoorOptions()
    options.presets = [
      "thumb": "rs:fill:100:100/q:50", "sharp": "sh:0.7/pr:thumb/q:60",
      "loop": "pr:loop/pr:sharp/w:5", "limit": "mrd:400",
    ]
    change(&options)
    return DoorKit(
      door: ImgproxyDoor(options), form: form,
      constants: ["scale": "1", "url": "local:///a.jpg", "format": "source", "pass": "vector"])
  }

  @Test func `options become parameters`() {
    Self.kit().expect(
      """
      resize:fill:300:200:1 > w=300 h=200 fit=cover enlarge=1
      rs:fill-down:300:200:0:1 > w=300 h=200 fit=cover-down extend=box background=ffffff00
      rs:force:300:200 > w=300 h=200 fit=fill [resize]
      rs:auto:300:200 > w=300 h=200 fit=auto
      rs:fill:300:0 > w=300
      rs:force:300 > w=300 fit=fill [resize]
      rs::300 > w=300
      rs:fit:300:0:0:1:so:0:5 > w=300 extend=box position=bottom offset=0,5 background=ffffff00
      s:300:200:t:1:noea > w=300 h=200 enlarge=1 extend=box position=right-top background=ffffff00
      size:300/rt:fill/h:100 > w=300 h=100 fit=cover
      w:100/width:200/height:0 > w=200
      w:99999/h:300 > w=65535 h=300 [resize]
      mw:500/min-height:40/w:300 > w=300 min-w=500 min-h=40
      z:0.5 > scale=0.5
      zoom:2/w:100/pd:10:5 > scale=2 w=100 pad=5,3,5,3 background=ffffff00 [padding]
      z:2/pd:5 > scale=2 pad=3,3,3,3 background=ffffff00 [padding]
      z:0.5:0.25 > w=50% h=25% fit=fill [zoom]
      z:2:0.5/rs:force:100:100 > w=200 h=50 fit=fill [resize zoom]
      dpr:1.50/w:300 > scale=1.5 w=300
      el:true/w:3000 > w=3000 enlarge=1
      el:1/el:no/w:3000 > w=3000
      w:500/h:500/ex:1 > w=500 h=500 extend=box background=ffffff00
      w:500/h:500/extend:1:ea:5:0.1 > w=500 h=500 extend=box position=right offset=5,0.1 background=ffffff00
      w:500/h:500/ex:1/ex:0 > w=500 h=500
      w:500/ex:1:fp:0.25:0.75 > w=500 extend=box position=0.25,0.75 background=ffffff00 [extend]
      w:300/h:600/exar:1:no::5 > w=300 h=600 extend=ratio position=top offset=0,5 background=ffffff00
      w:300/extend_ar:1 > w=300 background=ffffff00
      rs:fill:300:200:0:1/g:no > w=300 h=200 fit=cover extend=box position=top background=ffffff00 [extend]
      rs:fill:300:200/g:noea:10:0.5 > w=300 h=200 fit=cover position=right-top offset=10,0.5
      rs:fill:300:200/gravity:fp:0.5:0.75 > w=300 h=200 fit=cover position=0.5,0.75
      rs:fill:300:200/g:sm > w=300 h=200 fit=cover position=attention [gravity]
      rs:fill:300:200/g:ce:-10:-0.25 > w=300 h=200 fit=cover offset=-10,-0.25
      g:so/w:300 > w=300
      c:400:300 > crop=400,300
      crop:0.5:0:soea:10:0.25 > crop=0.5,0,right-bottom,10,0.25
      c:400.7:300/g:we > crop=400,300,left
      c:400:300:fp:0.3:0.7 > crop=400,300,fp,0.3,0.7
      c:400:300:sm > crop=400,300 [crop]
      c:0:0 > =
      pd:10 > pad=10,10,10,10 background=ffffff00
      padding:10:20/bg:f00 > pad=10,20,10,20 background=ff0000 flatten=1
      pd:1:2:3:4/pd::9/dpr:2 > scale=2 pad=1,9,3,9 background=ffffff00 [dpr]
      ar:0 > orient=0
      rot:90/fl:1:1 > rotate=90 flip=hv
      rotate:-90/flip:0:1 > rotate=270 flip=v
      rot:90/rot:360 > =
      bl:0.2/sh:0.05/pix:1 > =
      blur:300/sharpen:0.7/pixelate:8 > blur=250 sharpen=0.7 pixelate=8 [blur]
      wm:0.5:nowe:10:-5:0.25/dpr:2 > scale=2 watermark=default watermark_opacity=0.5 watermark_scale=0.25 watermark_position=left-top watermark_offset=20,-10 [watermark]
      watermark:1:re > watermark=default watermark_position=center watermark_repeat=xy [watermark]
      wm:1:re:10:20 > watermark=default watermark_position=center watermark_repeat=xy watermark_gap=10,20 [watermark]
      wm:0.5/wm:0 > =
      sm:0/kcr:0/scp:0/ph:1/eth:1 > strip=0 profile=keep [keep_copyright preserve_hdr enforce_thumbnail]
      strip_metadata:1/strip_color_profile:1 > =
      q:70/fq:jpeg:30 > quality=70
      fq:jpg:30:webp:20:png:10 > q_jpeg=30 q_webp=20
      mb:50000 > maxbytes=50000 [max_bytes]
      f:webp > format=webp no-pass
      skp:gif/w:9 > w=9 [skip_processing]
      cb:123/cachebuster:x:y > [cachebuster]
      fn:puppy%20dog/att:1 > filename=puppy dog download=1
      filename:cMOkcA:1/return_attachment:0 > filename=päp
      pr:thumb:sharp > w=100 h=100 fit=cover quality=60 sharpen=0.7
      preset:loop/w:7 > w=7 h=100 fit=cover quality=60 sharpen=0.7
      ra:linear/jpgo:1/dpi:72/aq:size:1 > [resizing_algorithm jpeg_options dpi autoquality]
      """)
  }

  @Test func `sources are found`() {
    Self.kit().expect(
      """
      /_/plain/local:///a.jpg > =
      /_/rs:fit:300:200/plain/https://example.com/a.jpg > url=https://example.com/a.jpg w=300 h=200
      /_/t:10/plain/local:///a.png > url=local:///a.png trim=10 [trim]
      /_/trim:400:f00:1:1/plain/local:///a.png > url=local:///a.png trim=255 trim_color=ff0000 trim_equal=hv [trim]
      /_/t:0.4:FF00FF::1/plain/local:///a.png > url=local:///a.png trim=1 trim_equal=v [trim]
      /_/background:128:129:130/plain/local:///a.png@jpg > url=local:///a.png format=jpeg background=808182 flatten=1 no-pass
      /_/bg:fff/bg:/plain/local:///a.png@jpg > url=local:///a.png format=jpeg no-pass
      /_/mb:50000/plain/local:///a.jpg@png > format=png no-pass [max_bytes]
      /_/ext:png/plain/local:///a.jpg@avif > format=avif no-pass
      /_/format:tiff/plain/local:///a.jpg@ > format=tiff no-pass
      /_/plain/local:///a.webp > url=local:///a.webp format=auto
      /_/plain/local:///a.svg@svg > url=local:///a.svg
      /_/skp:jpg:png/w:9/plain/local:///a.jpeg > url=local:///a.jpeg w=9 pass=all [skip_processing]
      /_/skp:jpg:png/w:9/plain/local:///a.jpg@png > w=9 format=png no-pass [skip_processing]
      /_/raw:1/w:300/fn:b/bg:f00/plain/local:///a.pdf > url=local:///a.pdf filename=b pass=all no-scale
      /_/w%3A300/plain/https://example.com/a%20b.jpg%3Fx=1%26y > url=https://example.com/a%20b.jpg?x=1&y w=300
      /_/w:300/plain/https:/example.com/a.jpg@png > url=https://example.com/a.jpg w=300 format=png no-pass
      /_/w:300/plain/local:/dir/a.jpg > url=local:///dir/a.jpg w=300
      /_/w:300/plain/s3:/bucket/key.jpg > url=s3://bucket/key.jpg w=300
      /_/w:300/plain/S3://bucket/a/key.jpg > url=s3://bucket/a/key.jpg w=300
      /_/plain/local:///logo%402x.png > url=local:///logo@2x.png scale=2
      /_/w:300/pd:4/plain/local:///logo%402x.png > url=local:///logo@2x.png w=300 pad=4,4,4,4 background=ffffff00
      /_/dpr:2/pd:3/plain/local:///logo%403x.png > url=local:///logo@3x.png scale=6 pad=1,1,1,1 background=ffffff00 [dpr]
      /_/w:300/aHR0cHM6Ly9leGFtcGxlLmNvbS9hLmpwZw > url=https://example.com/a.jpg w=300
      /_/w:300/aHR0cHM6Ly9l/eGFtcGxlLmNv/bS9hLmpwZw==.png > url=https://example.com/a.jpg w=300 format=png no-pass
      /_/w:300/aHR0cHM6Ly9leGFtcGxlLmNvbS9hLmpwZw.webp/my-puppy.webp > url=https://example.com/a.jpg w=300 format=webp no-pass
      /_/w:300/aHR0cHM6Ly9leGFtcGxlLmNvbS9hLmpwZw/my-puppy.jpg > url=https://example.com/a.jpg w=300
      //plain/local:///a.jpg > =
      """)
  }

  @Test func `bad options and addresses are refused as there`() {
    Self.kit().expect(
      """
      nope:1 > 404 nope: imgproxy has no such option
      w:-1 > 404 width: '-1' is not…
      w:abc > 404 width: 'abc' is not…
      w:1:2 > 404 width: at most 1 arguments…
      w:9999999999999999999999 > 404 width: '9999999999999999999999' is not…
      rs:best:1:1 > 404 resize: 'best' is none of…
      dpr:0 > 404 dpr: 0 is not above 0
      dpr:nan > 404 dpr: 'nan' is not…
      dpr:1e999 > 404 dpr: '1e999' is not…
      z:inf > 404 zoom: 'inf' is not…
      dpr:6/z:2 > 422 dpr: 12, together with zoom…
      dpr:0.0000001 > 422 dpr: 0, together with zoom…
      z:2:1/w:100 > 422 zoom: Pictor has no two factors…
      ex:1:sm > 404 extend: 'sm' is no gravity…
      ex:1:re > 404 extend: 're' is no gravity…
      exar:1:no:1:2:3 > 404 extend_aspect_ratio: 'no' is no gravity…
      g:sm:1 > 404 gravity: 'sm' is no gravity…
      g:fp:0.5 > 404 gravity: 'fp' is no gravity…
      g:fp:0.5:1.5 > 404 gravity: '1.5' is not…
      g:obj:face > 404 gravity: imgproxy Pro…
      c:100:200:re > 404 crop: 're' is no gravity…
      c:-1:0 > 404 crop: '-1' is not…
      t:10:red > 404 trim: 'red' is no colour…
      pd:-1 > 404 padding: '-1' is not…
      rot:45 > 404 rotate: 45 is no multiple of 90
      bg:1:2 > 404 background: a colour has 1 or 3 arguments
      bg:1:2:256 > 404 background: '256' is not…
      bg:11223344 > 404 background: '11223344' is no colour…
      wm:2 > 404 watermark: '2' is not…
      wm:1:sm > 404 watermark: 'sm' is no place…
      wm:1:ch > 404 watermark: imgproxy Pro…
      q:101 > 404 quality: '101' is not…
      fq:jpeg > 404 format_quality: each format has a quality
      fq:psd:1 > 404 format_quality: 'psd' is no format
      f:psd > 404 format: 'psd' is no format
      f:ico > 422 format: Pictor does not write 'ico'
      f:svg > 422 format: Pictor does not write 'svg'
      skp:psd > 404 skip_processing: 'psd' is no format
      exp:soon > 404 expires: 'soon' is not…
      fn:a+b:1 > 404 filename: the name is no base64url…
      pr:none > 404 preset: there is none named 'none'
      br:10 > 404 brightness: imgproxy Pro…
      pg:1 > 404 page: imgproxy Pro…
      mrd:100 > 403 max_result_dimension: addresses may not set limits
      msr:1 > 403 max_src_resolution: addresses may not set limits
      maf:1 > 403 max_animation_frames: addresses may not set limits
      /healthy/x > 404… | /_ > 404 the address: it has no options and no source
      /_/plain/ > 404 the address: it has no source
      /_/size,1,1/plain/local:///a.jpg > 404 the address: the source is no base64url…
      /_/w:1/-/w:2/plain/local:///a.jpg > 404 the address: the source is no base64url…
      /_/enc/AAAA > 404 the address: imgproxy Pro: it is encrypted
      /_/w:1/plain/local:///logo@2x.png > 404 format: '2x.png' is no format
      /_/plain/local:///a@b@c > 404 the address: an @ of the source is %40
      /_/plain/local:///a%zz > 404 the address: 'local:///a%zz' is not percent-encoded…
      /_/plain/local:///a%00 > 404 the address: 'local:///a%00' is not percent-encoded…
      /_/w%3/plain/local:///a.jpg > 404 the address: 'w%3' is not percent-encoded…
      /_/plain/a.jpg > 404 the source: the URL 'a.jpg' cannot be used: it has no scheme
      /_/plain/ftp://a/b.jpg > 404 the source: the URL 'ftp://a/b.jpg' cannot be used: the scheme must be…
      /_/plain/gs://bucket/a.jpg > 404 the source: Pictor loads no gs://…
      /_/plain/abs://bucket/a.jpg > 404 the source: Pictor loads no abs://…
      /_/plain/swift://bucket/a.jpg > 404 the source: Pictor loads no swift://…
      /_/AAAAA > 404 the address: it has no source
      /_/w:1/ > 404 the address: it has no source
      /_/aHR0c.png.jpg/a > 404 the address: the source is no base64url…
      """)
    for (options, body) in ["w:-1": "Invalid URL", "f:ico": "Invalid URL", "mrd:1": "Forbidden"] {
      let answer = Self.kit().refusal(options)
      #expect(answer?.body == body && answer?.contentType == "text/plain")
    }
  }

  @Test func `every option of the table is read by each name`() {
    for row in Peer.imgproxy.rows {
      for name in row.names { #expect(ImgproxyDraft.table[name]?.row == row) }
      guard case .refused(let reason) = row.standing, let name = row.names.last else { continue }
      #expect(Self.kit().reading("\(name):1") == "404 \(row.names[0]): \(reason)")
    }
  }

  @Test func `a secret is asked for in Authorization`() throws {
    let kit = Self.kit { $0.secrets = [Array("s3cret".utf8)] }
    let address = kit.address("/_/plain/http://h/a.jpg")
    let secret = kit.door.secret(of: address)
    #expect(try kit.door.translate(address).isSigned && secret?.field == "Authorization")
    #expect(secret?.values == [Array("Bearer s3cret".utf8)] && secret?.refusal.status == 403)
  }

  @Test func `limits need the permission or a preset`() {
    let limits = "mrd:400/msr:50/msfs:1/maf:2/mafr:3"
    #expect(Self.kit().refusal(limits)?.body == "Forbidden")
    let ignored =
      "max_src_resolution max_src_file_size max_animation_frames max_animation_frame_resolution"
    Self.kit { $0.allowsLimits = true }.expect("\(limits) > limitside=400 [\(ignored)]")
    Self.kit().expect("pr:limit > limitside=400")
  }

  @Test func `the default preset comes first`() {
    Self.kit { $0.presets["default"] = "w:50/pr:default/pr:thumb" }.expect(
      "w:10 > w=10 h=100 fit=cover quality=50")
  }

  @Test func `only presets may be allowed`() {
    Self.kit { $0.presetsOnly = true }.expect(
      """
      thumb:sharp > w=100 h=100 fit=cover quality=60 sharpen=0.7
      /_/thumb:sharp/bG9jYWw6Ly8vYS5qcGc > w=100 h=100 fit=cover quality=60 sharpen=0.7
      w:10 > 404… | thumb:w > 404…
      """)
  }

  @Test func `presets that multiply are bounded`() {
    Self.kit { options in
      for level in 0..<40 {
        options.presets["p\(level)"] = "pr:p\(level + 1)/pr:p\(level + 1)"
      }
      options.presets["p40"] = "w:1"
    }.expect("pr:p0 > 404…")
  }

  @Test func `arguments may have another separator`() {
    Self.kit { $0.separator = "," }.expect("size,100,100,1 > w=100 h=100 enlarge=1")
  }

  @Test func `expiry is passed on`() throws {
    let kit = Self.kit()
    #expect(
      try kit.door.translate(kit.address("exp:1609448400")).expiry
        == UnixTime(seconds: 1_609_448_400))
  }

  @Test func `sources are rewritten and allowed by their beginnings`() {
    Self.kit("/_/plain/*") { $0.baseURL = "https://example.com" }.expect(
      """
      a/b.jpg > url=https://example.com/a/b.jpg
      /_/plain//a.jpg > url=https://example.com/a.jpg
      .evil.com/a.jpg > url=https://example.com/.evil.com/a.jpg
      %40evil.com/a.jpg > url=https://example.com/@evil.com/a.jpg
      https://example.com/a.jpg > url=https://example.com/a.jpg
      https://example.com.evil.com/a.jpg > url=https://example.com/https://example.com.evil.com/a.jpg
      """)
    Self.kit("/_/plain/*") { $0.baseURL = "local:///images/" }.expect(
      "a.jpg > url=local:///images/a.jpg")
    Self.kit("/_/plain/*") { $0.baseURL = "local://" }.expect("a.jpg > =")
    Self.kit("/_/plain/*") {
      $0.replacements = [
        .init(pattern: "mys3://*/", text: "s3://bucket/${1}/x${2}/"),
        .init(pattern: "mys3://", text: "s3://images/"),
        .init(pattern: "u*-", text: "local:///"),
      ]
    }.expect(
      """
      mys3://items/a.jpg > url=s3://bucket/items/x/a.jpg
      mys3://a.jpg > url=s3://images/a.jpg
      user-1-a.jpg > =
      """)
    Self.kit("/_/plain/*") {
      $0.allowedSources = ["https://*.example.com/", "local:///public/", "https://e.net/public/"]
    }.expect(
      """
      https://a.example.com/a.jpg > url=https://a.example.com/a.jpg
      HTTPS://A.example.com/a.jpg > url=https://a.example.com/a.jpg
      https://example.com/a.jpg > 404… | https://a.example.org/a.jpg > 404…
      https://a/.example.com/a.jpg > 404… | https://a.example.com.evil.com/ > 404…
      local:///private/a.jpg > 404… | s3://bucket/a.jpg > 404…
      https://e.net/public/../private/a.jpg > 404…
      """)
  }
}
