// SmallDoorKit: reads tables of addresses, and mutates addresses, for the tests of small doors.

import Core
import Testing

@testable import Doors

/// A door under test, with the short form in which its tables have addresses.
struct SmallDoorKit {
  let door: any Door
  /// The address with `*` for the text of a table.
  let form: String
  /// The parameters that nearly all results have, which tables leave out.
  let constants: [String: String]

  /// Returns the whole address of a short form.
  func address(_ short: String) -> DoorAddress {
    let full =
      short.hasPrefix("/")
      ? short
      : form.split(separator: "*", omittingEmptySubsequences: false).joined(separator: short)
    let path = full.prefix { $0 != "?" }
    return DoorAddress(path: String(path), query: String(full.dropFirst(path.count + 1)))
  }

  /// Returns what becomes of an address: parameters and the options that are noted; or the status
  /// and the reason of the refusal; `=`: nothing but the constants.
  func reading(_ short: String) -> String {
    let translation: DoorTranslation
    do throws(DoorAnswer) { translation = try door.translate(address(short)) } catch {
      return "\(error.status) \(error.reason)"
    }
    #expect(translation.parameters.allSatisfy(Self.isRead), "\(short): \(translation.query)")
    var words = translation.parameters.filter { constants[$0.name] != $0.value }.map {
      $0.name + "=" + $0.value
    }
    for name in constants.keys.sorted() where translation[name] == nil {
      words.append("no-" + name)
    }
    if translation.redirectsFailures { words.append("(redirect)") }
    if translation.isDescription { words.append("(description)") }
    let notes = translation.notes.map(\.option)
    if !notes.isEmpty { words.append("[" + notes.joined(separator: " ") + "]") }
    return words.isEmpty ? "=" : words.joined(separator: " ")
  }

  /// Expects each entry of a table: a short form, ` > `, and its reading. Lines and ` | ` separate.
  func expect(_ table: String) {
    for line in table.split(separator: "\n").flatMap({ $0.split(separator: " | ") }) {
      guard let arrow = line.firstRange(of: " > ") else {
        Issue.record("no arrow in \(line)")
        continue
      }
      let short = String(line[..<arrow.lowerBound])
      #expect(door.claims(address(short)), "\(short)")
      #expect(reading(short) == line[arrow.upperBound...], "\(short)")
    }
  }

  /// Returns the refusal of an address.
  func refusal(_ short: String) -> DoorAnswer? {
    do throws(DoorAnswer) {
      _ = try door.translate(address(short))
      return nil
    } catch { return error }
  }

  /// Changes addresses byte by byte, and expects the same answer twice and only known parameters.
  func fuzz(_ seeds: [String], rounds: Int = 3_000) {
    var state: UInt64 = 0x9e37_79b9_7f4a_7c15
    func next(_ bound: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % max(bound, 1)
    }
    let pieces = [
      "/", "?", "&", "=", ",", "%", "%00", "%2F", "%zz", "..", "-1", "1e999", "nan", "inf", "(",
      ")",
      "😀", "999999999999999999999", "http://", "https:/", "_", ";", ":", "*", "#", "\"", "\\",
      "url=",
    ]
    for round in 0..<rounds {
      var bytes = Array(seeds[round % seeds.count].utf8)
      for _ in 0...next(4) {
        let place = next(bytes.count + 1)
        switch next(4) {
        case 0: bytes.insert(contentsOf: pieces[next(pieces.count)].utf8, at: place)
        case 1: bytes.insert(UInt8(next(256)), at: place)
        case 2 where place < bytes.count: bytes.remove(at: place)
        default: bytes.removeLast(next(bytes.count / 4))
        }
      }
      let address = address("/" + String(decoding: bytes.drop { $0 == 0x2f }, as: UTF8.self))
      guard door.claims(address) else { continue }
      let results = (0..<2).map { _ -> Result<DoorTranslation, DoorAnswer> in
        do throws(DoorAnswer) { return .success(try door.translate(address)) } catch {
          return .failure(error)
        }
      }
      #expect(results[0] == results[1])
      switch results[0] {
      case .success(let translation):
        #expect(
          translation.parameters.allSatisfy(Self.isRead), "\(address): \(translation.query)")
        #expect(translation["url"] != nil || door.takesBodies, "\(address)")
        #expect(translation["scale"] != nil, "\(address)")
      case .failure(let answer):
        #expect(400...599 ~= answer.status && !answer.body.isEmpty && !answer.reason.isEmpty)
      }
    }
  }

  /// Whether Pictor reads a parameter; those of a request alone are known by name.
  private static func isRead(_ parameter: DoorTranslation.Parameter) -> Bool {
    let (name, value) = (parameter.name, parameter.value)
    guard let row = TransformParameter.table.first(where: { $0.name == name }) else {
      return ["url", "filename", "maxage", "download", "watermark"].contains(name)
    }
    var draft = TransformDraft()
    return name + value == "wauto" || row.read(ParameterText(value), &draft)
  }
}

/// A generator of always the same numbers (SplitMix64).
struct FixedGenerator: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var value = state
    value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
    value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
    return value ^ (value >> 31)
  }
}
