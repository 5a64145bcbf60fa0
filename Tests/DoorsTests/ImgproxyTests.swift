// ImgproxyTests: the addresses of imgproxy become Pictor's own parameters, or imgproxy's refusals.

import Core
import Testing

@testable import Doors

@Suite struct ImgproxyTests {
  /// Options of `/_/OPTIONS/plain/local:///a.jpg`, what they become, and the options with notes.
  /// The parameters of every address are left out: `url`, `scale=1`, and the source's format.
  static let golden = """
    resize:fill:300:200:1 | w=300&h=200&fit=cover&enlarge=1 |
    rs:fill-down:300:200:0:1 | w=300&h=200&fit=cover-down&extend=box&background=ffffff00 |
    rs:force:300:200 | w=300&h=200&fit=fill | resize
    rs:auto:300:200 | w=300&h=200&fit=auto |
    rs:fill:300:0 | w=300 |
    rs:force:300 | w=300&fit=fill | resize
    rs::300 | w=300 |
    rs:fit:300:0:0:1:so:0:5 | w=300&extend=box&position=bottom&offset=0,5&background=ffffff00 |
    s:300:200:t:1:noea | w=300&h=200&enlarge=1&extend=box&position=right-top&background=ffffff00 |
    size:300/rt:fill/h:100 | w=300&h=100&fit=cover |
    w:100/width:200/height:0 | w=200 |
    w:99999/h:300 | w=65535&h=300 | resize
    mw:500/min-height:40/w:300 | w=300&min-w=500&min-h=40 |
    z:0.5 | scale=0.5 |
    zoom:2/w:100/pd:10:5 | scale=2&w=100&pad=5,3,5,3&background=ffffff00 | padding
    z:2/pd:5 | scale=2&pad=3,3,3,3&background=ffffff00 | padding
    z:0.5:0.25 | w=50%&h=25%&fit=fill | zoom
    z:2:0.5/rs:force:100:100 | w=200&h=50&fit=fill | resize zoom
    dpr:1.50/w:300 | scale=1.5&w=300 |
    el:true/w:3000 | w=3000&enlarge=1 |
    el:1/el:no/w:3000 | w=3000 |
    w:500/h:500/ex:1 | w=500&h=500&extend=box&background=ffffff00 |
    w:500/h:500/extend:1:ea:5:0.1 | w=500&h=500&extend=box&position=right&offset=5,0.1&background=ffffff00 |
    w:500/h:500/ex:1/ex:0 | w=500&h=500 |
    w:500/ex:1:fp:0.25:0.75 | w=500&extend=box&position=0.25,0.75&background=ffffff00 | extend
    w:300/h:600/exar:1:no::5 | w=300&h=600&extend=ratio&position=top&offset=0,5&background=ffffff00 |
    w:300/extend_ar:1 | w=300&background=ffffff00 |
    rs:fill:300:200:0:1/g:no | w=300&h=200&fit=cover&extend=box&position=top&background=ffffff00 | extend
    rs:fill:300:200/g:noea:10:0.5 | w=300&h=200&fit=cover&position=right-top&offset=10,0.5 |
    rs:fill:300:200/gravity:fp:0.5:0.75 | w=300&h=200&fit=cover&position=0.5,0.75 |
    rs:fill:300:200/g:sm | w=300&h=200&fit=cover&position=attention | gravity
    rs:fill:300:200/g:ce:-10:-0.25 | w=300&h=200&fit=cover&offset=-10,-0.25 |
    g:so/w:300 | w=300 |
    c:400:300 | crop=400,300 |
    crop:0.5:0:soea:10:0.25 | crop=0.5,0,right-bottom,10,0.25 |
    c:400.7:300/g:we | crop=400,300,left |
    c:400:300:fp:0.3:0.7 | crop=400,300,fp,0.3,0.7 |
    c:400:300:sm | crop=400,300 | crop
    c:0:0 | |
    pd:10 | pad=10,10,10,10&background=ffffff00 |
    padding:10:20/bg:f00 | pad=10,20,10,20&background=ff0000&flatten=1 |
    pd:1:2:3:4/pd::9/dpr:2 | scale=2&pad=1,9,3,9&background=ffffff00 | dpr
    ar:0 | orient=0 |
    rot:90/fl:1:1 | rotate=90&flip=hv |
    rotate:-90/flip:0:1 | rotate=270&flip=v |
    rot:90/rot:360 | |
    bl:0.2/sh:0.05/pix:1 | |
    blur:300/sharpen:0.7/pixelate:8 | blur=250&sharpen=0.7&pixelate=8 | blur
    wm:0.5:nowe:10:-5:0.25/dpr:2 | scale=2&watermark=default&watermark_opacity=0.5&watermark_scale=0.25&watermark_position=left-top&watermark_offset=20,-10 | watermark
    watermark:1:re | watermark=default&watermark_position=center&watermark_repeat=xy | watermark
    wm:1:re:10:20 | watermark=default&watermark_position=center&watermark_repeat=xy&watermark_gap=10,20 | watermark
    wm:0.5/wm:0 | |
    sm:0/kcr:0/scp:0/ph:1/eth:1 | strip=0&profile=keep | keep_copyright preserve_hdr enforce_thumbnail
    strip_metadata:1/strip_color_profile:1 | |
    q:70/fq:jpeg:30 | quality=70 |
    fq:jpg:30:webp:20:png:10 | q_jpeg=30&q_webp=20 |
    mb:50000 | maxbytes=50000 | max_bytes
    f:webp | format=webp |
    skp:gif/w:9 | w=9 | skip_processing
    cb:123/cachebuster:x:y |  | cachebuster
    fn:puppy%20dog/att:1 | filename=puppy dog&download=1 |
    filename:cMOkcA:1/return_attachment:0 | filename=päp |
    pr:thumb:sharp | w=100&h=100&fit=cover&quality=60&sharpen=0.7 |
    preset:loop/w:7 | w=7&h=100&fit=cover&quality=60&sharpen=0.7 |
    ra:linear/jpgo:1/dpi:72/aq:size:1 |  | resizing_algorithm jpeg_options dpi autoquality
    """

  /// Whole addresses, likewise, with `url`.
  static let sources = """
    /_/plain/local:///a.jpg | url=local:///a.jpg |
    /_/rs:fit:300:200/plain/https://example.com/a.jpg | url=https://example.com/a.jpg&w=300&h=200 |
    /_/t:10/plain/local:///a.png | url=local:///a.png&trim=10 | trim
    /_/trim:400:f00:1:1/plain/local:///a.png | url=local:///a.png&trim=255&trim_color=ff0000&trim_equal=hv | trim
    /_/t:0.4:FF00FF::1/plain/local:///a.png | url=local:///a.png&trim=1&trim_equal=v | trim
    /_/background:128:129:130/plain/local:///a.png@jpg | url=local:///a.png&format=jpeg&background=808182&flatten=1 |
    /_/bg:fff/bg:/plain/local:///a.png@jpg | url=local:///a.png&format=jpeg |
    /_/mb:50000/plain/local:///a.jpg@png | url=local:///a.jpg&format=png | max_bytes
    /_/ext:png/plain/local:///a.jpg@avif | url=local:///a.jpg&format=avif |
    /_/format:tiff/plain/local:///a.jpg@ | url=local:///a.jpg&format=tiff |
    /_/plain/local:///a.webp | url=local:///a.webp&format=auto&pass=vector |
    /_/plain/local:///a.svg@svg | url=local:///a.svg |
    /_/skp:jpg:png/w:9/plain/local:///a.jpeg | url=local:///a.jpeg&w=9&format=source&pass=all | skip_processing
    /_/skp:jpg:png/w:9/plain/local:///a.jpg@png | url=local:///a.jpg&w=9&format=png | skip_processing
    /_/raw:1/w:300/fn:b/bg:f00/plain/local:///a.pdf | url=local:///a.pdf&filename=b&format=source&pass=all |
    /_/w%3A300/plain/https://example.com/a%20b.jpg%3Fx=1%26y | url=https://example.com/a%20b.jpg?x=1&y&w=300 |
    /_/w:300/plain/https:/example.com/a.jpg@png | url=https://example.com/a.jpg&w=300&format=png |
    /_/w:300/plain/local:/dir/a.jpg | url=local:///dir/a.jpg&w=300 |
    /_/w:300/plain/s3:/bucket/key.jpg | url=s3://bucket/key.jpg&w=300 |
    /_/w:300/plain/S3://bucket/a/key.jpg | url=s3://bucket/a/key.jpg&w=300 |
    /_/plain/local:///logo%402x.png | url=local:///logo@2x.png&scale=2 |
    /_/w:300/pd:4/plain/local:///logo%402x.png | url=local:///logo@2x.png&w=300&pad=4,4,4,4&background=ffffff00 |
    /_/dpr:2/pd:3/plain/local:///logo%403x.png | url=local:///logo@3x.png&scale=6&pad=1,1,1,1&background=ffffff00 | dpr
    /_/w:300/aHR0cHM6Ly9leGFtcGxlLmNvbS9hLmpwZw | url=https://example.com/a.jpg&w=300 |
    /_/w:300/aHR0cHM6Ly9l/eGFtcGxlLmNv/bS9hLmpwZw==.png | url=https://example.com/a.jpg&w=300&format=png |
    /_/w:300/aHR0cHM6Ly9leGFtcGxlLmNvbS9hLmpwZw.webp/my-puppy.webp | url=https://example.com/a.jpg&w=300&format=webp |
    /_/w:300/aHR0cHM6Ly9leGFtcGxlLmNvbS9hLmpwZw/my-puppy.jpg | url=https://example.com/a.jpg&w=300 |
    //plain/local:///a.jpg | url=local:///a.jpg |
    """

  /// Options that are refused, the status, and a part of the reason.
  static let refusals = """
    nope:1 | 404 | nope: imgproxy has no such option
    w:-1 | 404 | width: '-1' is not
    w:abc | 404 | width: 'abc' is not
    w:1:2 | 404 | width: at most 1 arguments
    w:9999999999999999999999 | 404 | width: '9999999999999999999999' is not
    rs:best:1:1 | 404 | resize: 'best' is none of
    dpr:0 | 404 | dpr: 0 is not above 0
    dpr:nan | 404 | dpr: 'nan' is not
    dpr:1e999 | 404 | dpr: '1e999' is not
    z:inf | 404 | zoom: 'inf' is not
    dpr:6/z:2 | 422 | dpr: 12, together with zoom
    dpr:0.0000001 | 422 | dpr: 0, together with zoom
    z:2:1/w:100 | 422 | zoom: Pictor has no two factors
    ex:1:sm | 404 | extend: 'sm' is no gravity
    ex:1:re | 404 | extend: 're' is no gravity
    exar:1:no:1:2:3 | 404 | extend_aspect_ratio: 'no' is no gravity
    g:sm:1 | 404 | gravity: 'sm' is no gravity
    g:fp:0.5 | 404 | gravity: 'fp' is no gravity
    g:fp:0.5:1.5 | 404 | gravity: '1.5' is not
    g:obj:face | 404 | gravity: imgproxy Pro
    c:100:200:re | 404 | crop: 're' is no gravity
    c:-1:0 | 404 | crop: '-1' is not
    t:10:red | 404 | trim: 'red' is no colour
    pd:-1 | 404 | padding: '-1' is not
    rot:45 | 404 | rotate: 45 is no multiple of 90
    bg:1:2 | 404 | background: a colour has 1 or 3 arguments
    bg:1:2:256 | 404 | background: '256' is not
    bg:11223344 | 404 | background: '11223344' is no colour
    wm:2 | 404 | watermark: '2' is not
    wm:1:sm | 404 | watermark: 'sm' is no place
    wm:1:ch | 404 | watermark: imgproxy Pro
    q:101 | 404 | quality: '101' is not
    fq:jpeg | 404 | format_quality: each format has a quality
    fq:psd:1 | 404 | format_quality: 'psd' is no format
    f:psd | 404 | format: 'psd' is no format
    f:ico | 422 | format: Pictor does not write 'ico'
    f:svg | 422 | format: Pictor does not write 'svg'
    skp:psd | 404 | skip_processing: 'psd' is no format
    exp:soon | 404 | expires: 'soon' is not
    fn:a+b:1 | 404 | filename: the name is no base64url
    pr:none | 404 | preset: there is none named 'none'
    br:10 | 404 | brightness: imgproxy Pro
    pg:1 | 404 | page: imgproxy Pro
    mrd:100 | 403 | max_result_dimension: addresses may not set limits
    msr:1 | 403 | max_src_resolution: addresses may not set limits
    maf:1 | 403 | max_animation_frames: addresses may not set limits
    """

  /// Addresses that are none of imgproxy's, and a part of the reason.
  static let faults = """
    /_ | no options and no source
    /_/plain/ | no source
    /_/size,1,1/plain/local:///a.jpg | no base64url
    /_/w:1/-/w:2/plain/local:///a.jpg | no base64url
    /_/enc/AAAA | imgproxy Pro: it is encrypted
    /_/w:1/plain/local:///logo@2x.png | format: '2x.png' is no format
    /_/plain/local:///a@b@c | an @ of the source is %40
    /_/plain/local:///a%zz | not percent-encoded
    /_/plain/local:///a%00 | not percent-encoded
    /_/w%3/plain/local:///a.jpg | not percent-encoded
    /_/plain/a.jpg | it has no scheme
    /_/plain/ftp://a/b.jpg | the scheme must be
    /_/plain/gs://bucket/a.jpg | loads no gs://
    /_/plain/abs://bucket/a.jpg | loads no abs://
    /_/plain/swift://bucket/a.jpg | loads no swift://
    /_/AAAAA | no source
    /_/w:1/ | no source
    /_/aHR0c.png.jpg/a | no base64url
    """

  static let presets = [
    "thumb": "rs:fill:100:100/q:50", "sharp": "sh:0.7/pr:thumb/q:60",
    "loop": "pr:loop/pr:sharp/w:5", "limit": "mrd:400",
  ]

  /// A door with presets, changed as a test needs it.
  static func door(_ change: (inout DoorOptions) -> Void = { _ in }) -> ImgproxyDoor {
    var options = DoorOptions()
    options.presets = presets
    change(&options)
    return ImgproxyDoor(options)
  }

  static func cells(_ line: Substring) -> [String] {
    line.split(separator: "|", omittingEmptySubsequences: false).map { cell in
      String(cell.trimming { $0 == " " })
    }
  }

  /// Returns the parameters without those of every address, and the options with notes; or the
  /// refusal.
  static func outcome(
    _ path: String, _ door: ImgproxyDoor = door()
  ) -> Result<(own: String, notes: String), DoorAnswer> {
    do throws(DoorAnswer) {
      let translation = try door.translate(DoorAddress(path: path))
      let isOpen = translation["format"] == "source" && translation["pass"] == "vector"
      let own = translation.parameters.filter {
        !($0.name == "scale" && $0.value == "1")
          && !(isOpen && ["format", "pass"].contains($0.name))
      }
      let notes = translation.notes.map(\.option).joined(separator: " ")
      return .success((own.map { $0.name + "=" + $0.value }.joined(separator: "&"), notes))
    } catch {
      return .failure(error)
    }
  }

  static func own(_ path: String, _ door: ImgproxyDoor = door()) -> String? {
    switch outcome(path, door) {
    case .success(let found): found.own
    case .failure(let answer): "\(answer.status) \(answer.body)"
    }
  }

  @Test func `a secret is asked for in Authorization`() throws {
    let door = Self.door { $0.secrets = [Array("s3cret".utf8)] }
    let address = DoorAddress(path: "/_/plain/http://h/a.jpg")
    let secret = door.secret(of: address)
    #expect(try door.translate(address).isSigned && secret?.field == "Authorization")
    #expect(secret?.values == [Array("Bearer s3cret".utf8)] && secret?.refusal.status == 403)
  }

  @Test func `options become parameters`() {
    for line in Self.golden.split(separator: "\n") {
      let cells = Self.cells(line)
      guard case .success(let found) = Self.outcome("/_/\(cells[0])/plain/local:///a.jpg") else {
        Issue.record("refused: \(line)")
        continue
      }
      let expected = "url=local:///a.jpg" + (cells[1].isEmpty ? "" : "&" + cells[1])
      #expect(
        Set(found.own.split(separator: "&")) == Set(expected.split(separator: "&")), "\(line)")
      #expect(found.notes == cells[2], "\(line)")
    }
  }

  @Test func `sources are found`() {
    for line in Self.sources.split(separator: "\n") {
      let cells = Self.cells(line)
      guard case .success(let found) = Self.outcome(cells[0]) else {
        Issue.record("refused: \(line)")
        continue
      }
      #expect(found.own == cells[1], "\(line)")
      #expect(found.notes == cells[2], "\(line)")
    }
  }

  @Test func `bad options are refused as there`() {
    for line in Self.refusals.split(separator: "\n") {
      let cells = Self.cells(line)
      guard case .failure(let answer) = Self.outcome("/_/\(cells[0])/plain/local:///a.jpg") else {
        Issue.record("accepted: \(line)")
        continue
      }
      #expect("\(answer.status)" == cells[1], "\(line)")
      #expect(answer.body == (answer.status == 403 ? "Forbidden" : "Invalid URL"))
      #expect(answer.contentType == "text/plain")
      #expect(answer.reason.hasPrefix(cells[2]), "\(answer.reason)")
    }
  }

  @Test func `bad addresses are 404`() {
    for line in Self.faults.split(separator: "\n") {
      let cells = Self.cells(line)
      guard case .failure(let answer) = Self.outcome(cells[0]) else {
        Issue.record("accepted: \(line)")
        continue
      }
      #expect(answer.status == 404 && answer.reason.contains(cells[1]), "\(answer.reason)")
    }
  }

  @Test func `every option of the table is read by each name`() {
    var names: Set<String> = []
    for row in Peer.imgproxy.rows {
      for name in row.names {
        #expect(names.insert(name).inserted, "\(name) is there twice")
        #expect(ImgproxyDraft.table[name]?.row == row)
      }
    }
    #expect(names.count > 100)
    for row in Peer.imgproxy.rows {
      guard case .refused(let reason) = row.standing, let name = row.names.last else { continue }
      guard case .failure(let answer) = Self.outcome("/_/\(name):1/plain/local:///a.jpg") else {
        Issue.record("accepted: \(name)")
        continue
      }
      #expect(answer.status == 404 && answer.reason == "\(row.names[0]): \(reason)")
    }
  }

  @Test func `landing and health are not the door's`() {
    let paths = ["/", "/health", "", "/_/plain/local:///a.jpg", "/healthy/x"]
    #expect(
      paths.map { Self.door().claims(DoorAddress(path: $0)) } == [false, false, false, true, true])
  }

  @Test func `limits need the permission or a preset`() {
    let path = "/_/mrd:400/msr:50/msfs:1/maf:2/mafr:3/plain/local:///a.jpg"
    #expect(Self.own(path) == "403 Forbidden")
    #expect(
      Self.own(path, Self.door { $0.allowsLimits = true }) == "url=local:///a.jpg&limitside=400")
    #expect(Self.own("/_/pr:limit/plain/local:///a.jpg") == "url=local:///a.jpg&limitside=400")
  }

  @Test func `the default preset comes first`() {
    let door = Self.door { $0.presets["default"] = "w:50/pr:default/pr:thumb" }
    #expect(
      Self.own("/_/w:10/plain/local:///a.jpg", door)
        == "url=local:///a.jpg&w=10&h=100&fit=cover&quality=50")
  }

  @Test func `only presets may be allowed`() {
    let door = Self.door { $0.presetsOnly = true }
    let expected = "url=local:///a.jpg&w=100&h=100&fit=cover&quality=60&sharpen=0.7"
    #expect(Self.own("/_/thumb:sharp/plain/local:///a.jpg", door) == expected)
    #expect(Self.own("/_/thumb:sharp/bG9jYWw6Ly8vYS5qcGc", door) == expected)
    #expect(Self.own("/_/w:10/plain/local:///a.jpg", door) == "404 Invalid URL")
    #expect(Self.own("/_/thumb:w/plain/local:///a.jpg", door) == "404 Invalid URL")
  }

  @Test func `presets that multiply are bounded`() {
    let door = Self.door { options in
      for level in 0..<40 {
        options.presets["p\(level)"] = "pr:p\(level + 1)/pr:p\(level + 1)"
      }
      options.presets["p40"] = "w:1"
    }
    #expect(Self.own("/_/pr:p0/plain/local:///a.jpg", door) == "404 Invalid URL")
  }

  @Test func `arguments may have another separator`() {
    let door = Self.door { $0.separator = "," }
    #expect(
      Self.own("/_/size,100,100,1/plain/local:///a.jpg", door)
        == "url=local:///a.jpg&w=100&h=100&enlarge=1")
  }

  @Test func `expiry is passed on`() throws {
    let translation = try Self.door().translate(
      DoorAddress(path: "/_/exp:1609448400/plain/local:///a.jpg"))
    #expect(translation.expiry == UnixTime(seconds: 1_609_448_400))
  }

  @Test func `sources are rewritten and allowed by their beginnings`() {
    let base = Self.door { $0.baseURL = "https://example.com" }
    #expect(Self.own("/_/plain/a/b.jpg", base) == "url=https://example.com/a/b.jpg")
    #expect(Self.own("/_/plain//a.jpg", base) == "url=https://example.com/a.jpg")
    #expect(Self.own("/_/plain/.evil.com/a.jpg", base) == "url=https://example.com/.evil.com/a.jpg")
    #expect(
      Self.own("/_/plain/%40evil.com/a.jpg", base) == "url=https://example.com/@evil.com/a.jpg")
    #expect(Self.own("/_/plain/https://example.com/a.jpg", base) == "url=https://example.com/a.jpg")
    #expect(
      Self.own("/_/plain/https://example.com.evil.com/a.jpg", base)
        == "url=https://example.com/https://example.com.evil.com/a.jpg")
    let images = Self.door { $0.baseURL = "local:///images/" }
    #expect(Self.own("/_/plain/a.jpg", images) == "url=local:///images/a.jpg")
    #expect(
      Self.own("/_/plain/a.jpg", Self.door { $0.baseURL = "local://" }) == "url=local:///a.jpg")

    let replacing = Self.door {
      $0.replacements = [
        .init(pattern: "mys3://*/", text: "s3://bucket/${1}/x${2}/"),
        .init(pattern: "mys3://", text: "s3://images/"),
        .init(pattern: "u*-", text: "local:///"),
      ]
    }
    #expect(Self.own("/_/plain/mys3://items/a.jpg", replacing) == "url=s3://bucket/items/x/a.jpg")
    #expect(Self.own("/_/plain/mys3://a.jpg", replacing) == "url=s3://images/a.jpg")
    #expect(Self.own("/_/plain/user-1-a.jpg", replacing) == "url=local:///a.jpg")

    let strict = Self.door {
      $0.allowedSources = ["https://*.example.com/", "local:///public/"]
    }
    #expect(Self.own("/_/plain/https://a.example.com/a.jpg", strict) != "404 Invalid URL")
    #expect(Self.own("/_/plain/HTTPS://A.example.com/a.jpg", strict) != "404 Invalid URL")
    for source in [
      "https://example.com/a.jpg", "https://a.example.org/a.jpg", "https://a/.example.com/a.jpg",
      "https://a.example.com.evil.com/", "local:///private/a.jpg", "s3://bucket/a.jpg",
    ] { #expect(Self.own("/_/plain/\(source)", strict) == "404 Invalid URL", "\(source)") }
  }

  @Test func `dot segments do not leave an allowed beginning`() {
    let strict = Self.door { $0.allowedSources = ["https://example.com/public/"] }
    #expect(
      Self.own("/_/plain/https://example.com/public/../private/a.jpg", strict) == "404 Invalid URL")
  }
}
