// CropTests: which area of an image a crop means.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct CropTests {
  /// In an image of 200 × 100 pixels.
  @Test(arguments: [
    (Length.pixels(50), Length.pixels(40), Crop.Place.named(.center), "75,30,50,40"),
    (.pixels(50), .pixels(0), .named(.rightBottom), "150,0,50,100"),
    (.share(0.25), .share(0.5), .named(.leftTop), "0,0,50,50"),
    (.pixels(900), .share(1), .named(.left), "0,0,200,100"),
    (.pixels(30), .pixels(20), .at(x: .share(0.5), y: .pixels(90)), "100,90,30,10"),
    (.share(0.001), .share(0.0), .named(.leftTop), "0,0,1,1"),
    (.share(0.1), .share(1), .at(x: .share(0.998), y: .pixels(0)), "199,0,1,100"),
    (.share(0.001), .pixels(1), .at(x: .pixels(0), y: .pixels(0)), "0,0,1,1"),
    (
      .pixels(50), .pixels(40), .named(.rightBottom, Offset(x: .pixels(10), y: .share(0.1))),
      "140,50,50,40"
    ),
    (
      .pixels(50), .pixels(40), .named(.center, Offset(x: .pixels(-5), y: .pixels(7))),
      "70,37,50,40"
    ),
    (
      .pixels(50), .pixels(40), .named(.left, Offset(x: .share(-0.5), y: .share(0.9))), "0,60,50,40"
    ),
    (.pixels(50), .pixels(40), .around(FocalPoint(x: 0.5, y: 0.1)), "75,0,50,40"),
    (.pixels(50), .pixels(0), .around(FocalPoint(x: 0.9, y: 1)), "150,0,50,100"),
    (.pixels(0), .pixels(0), .faces(margin: 3), "0,0,200,100"),
  ])
  func `a crop is an area of the image`(
    width: Length, height: Length, place: Crop.Place, area: String
  ) {
    let crop = Crop(width: width, height: height, at: place)
    #expect(crop.area(in: size(width: 200, height: 100))?.description == area)
  }

  @Test func `what begins outside is no area`() {
    for place in [
      Crop.Place.at(x: .pixels(200), y: .pixels(0)), .at(x: .pixels(0), y: .share(1)),
    ] {
      let crop = Crop(width: .pixels(1), height: .pixels(1), at: place)
      #expect(crop.area(in: size(width: 200, height: 100)) == nil)
    }
  }
}
