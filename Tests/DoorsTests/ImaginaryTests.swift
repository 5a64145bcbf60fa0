// ImaginaryTests: the door of imaginary.

import Core
import Testing

@testable import Doors

@Suite struct ImaginaryDoorTests {
  static func kit(_ change: (inout DoorOptions) -> Void = { _ in }) -> DoorKit {
    var options = DoorOptions()
    options.baseURL = "local://"
    change(&options)
    return DoorKit(
      door: ImaginaryDoor(options), form: "/*", constants: ["scale": "1", "format": "source"])
  }

  @Test func `reads operations and parameters`() {
    Self.kit().expect(
      """
      resize?width=300 > w=300 | resize?height=200&url=https://h/a.jpg > h=200 url=https://h/a.jpg
      resize?width=300&height=200 > w=300 h=200 fit=contain [resize]
      resize?width=300&height=200&nocrop=false > w=300 h=200 fit=cover-down
      resize?width=300&height=200&force=true > w=300 h=200 fit=fill enlarge=1
      resize > 400 missing required param: height or width
      resize?width=abc > 400 width: 'abc' is not a number from 0 to 65535
      fit?width=300&height=200 > w=300 h=200
      fit?width=300 > 400 missing required param: height and width
      thumbnail?width=99 > w=99 | thumbnail?width=99&height=9 > w=99 h=9 fit=fill enlarge=1
      enlarge?width=99&height=9 > w=99 h=9 fit=cover enlarge=1
      crop?width=99&height=9&gravity=north > position=top w=99 h=9 fit=cover-down [gravity crop]
      crop?width=99 > 501 crop: without width or height
      crop?width=99&aspectratio=16:9 > w=99 ar=16:9 fit=cover-down [crop]
      extract?top=1&left=2&areawidth=3&areaheight=4 > crop=2,1,3,4
      extract?top=1&areawidth=3 > 400 missing required params: top, left, areawidth, areaheight
      extract?top=1&areawidth=3&areaheight=4&width=9 > 501 extract: only an area
      rotate?rotate=90 > rotate=90 | rotate?rotate=45 > 501 rotate: only by multiples of 90 degrees
      flip > flip=v | flop > flip=h | autorotate > = | convert?type=webp > format=webp
      convert?type=jpg&quality=70 > quality=70 format=jpeg
      convert?type=heif > 501 type: HEIC is read, and not written
      convert?type=bmp > 400 type: one of jpeg, jpg, png, webp, avif, gif, tiff, auto, \

      blur?sigma=5 > blur=5 [blur] | blur?sigma=0 > [blur]
      resize?width=9&norotation=true > orient=0 w=9
      resize?width=9&norotation=maybe > 400 norotation: true or false
      resize?width=9&colorspace=bw&background=255,0,16&palette=1 > \
      background=ff0010 grayscale=1 colours=256 w=9
      resize?width=9&stripmeta=true&compression=3&other=1 > w=9 [compression stripmeta]
      resize?width=9&file=a%20b/c.jpg > w=9 url=local:///a%20b/c.jpg
      zoom?factor=2 > 501 zoom: /image repeats no pixels | watermark?text=x > \
      501 watermark: /image writes no text
      info > (description)
      """.replacing(", \n\n", with: ", \n"))
  }

  @Test func `a pipeline is one request, as Nextcloud sends it`() {
    let kit = Self.kit { $0.secrets = [Array("k1".utf8), Array("k2".utf8)] }
    func address(_ operations: String, key: String = "k2") -> String {
      "/pipeline?operations=\(PercentEncoding.encode(operations))&key=\(key)"
    }
    let sized =
      #""params":{"width":1024,"height":"768","stripmeta":"true","type":"jpeg","#
      + #""norotation":"true","quality":"80"}}]"#
    #expect(
      kit.reading(address(#"[{"operation":"autorotate"},{"operation":"fit","# + sized))
        == "quality=80 format=jpeg w=1024 h=768 [stripmeta]")
    #expect(
      kit.reading(address(#"[{"operation":"smartcrop","# + sized))
        == "orient=0 quality=80 format=jpeg w=1024 h=768 position=faces fit=cover-down "
        + "[stripmeta smartcrop]")
    for (operations, reason) in [
      ("[]", "1 to 10 operations"), ("{", "1 to 10 operations"), ("", "1 to 10 operations"),
      (String(repeating: "[", count: 5_000), "1 to 10 operations"),
      (
        "[" + String(repeating: #"{"operation":"flip"},"#, count: 10) + #"{"operation":"flip"}]"#,
        "1 to 10 operations"
      ),
      (
        #"[{"operation":"fit","params":{"width":9,"height":9}},{"operation":"crop","params":{"width":5}}]"#,
        "one operation may change the size"
      ),
      (#"[{"operation":"other"}]"#, "no such operation"),
    ] {
      #expect(kit.reading(address(operations)).contains(reason), "\(operations.prefix(80))")
    }
  }

  @Test func `a key is as good as a signature, in the query or in a field`() throws {
    let kit = Self.kit { $0.secrets = [Array("k1".utf8), Array("k2".utf8)] }
    func secret(_ short: String, _ kit: DoorKit) -> DoorSecret? {
      kit.door.secret(of: kit.address(short))
    }
    let wrong = secret("/flip?key=k3", kit)
    #expect(wrong?.values == [] && wrong?.refusal.status == 401)
    #expect(wrong?.refusal.body.contains("invalid or missing API key") == true)
    #expect(secret("/flip?key=k1", kit) == nil)
    let open = secret("/flip", kit)
    #expect(open?.field == "API-Key" && open?.values.count == 2)
    #expect(try kit.door.translate(kit.address("/flip")).isSigned)
    #expect(try !Self.kit().door.translate(kit.address("/flip")).isSigned)
    #expect(secret("/flip", Self.kit()) == nil)
  }
}
