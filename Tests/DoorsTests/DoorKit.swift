// DoorKit: reads tables of addresses for the tests of doors.

import Core
import TestSupport
import Testing

@testable import Doors

/// A door under test, with the short form in which its tables have addresses.
struct DoorKit {
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
    let areRead = translation.parameters.allSatisfy { $0.isRead }
    #expect(areRead, "\(short): \(translation.query)")
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

  /// Expects each entry of a table: a short form, ` > `, and its reading, or how it begins and `…`.
  /// Lines and ` | ` separate.
  func expect(_ table: String) {
    for line in table.split(separator: "\n").flatMap({ $0.split(separator: " | ") }) {
      guard let arrow = line.firstRange(of: " > ") else {
        Issue.record("no arrow in \(line)")
        continue
      }
      let short = String(line[..<arrow.lowerBound])
      #expect(door.claims(address(short)), "\(short)")
      let (found, expected) = (reading(short), line[arrow.upperBound...])
      let isRight = expected.last == "…" ? found.hasPrefix(expected.dropLast()) : found == expected
      #expect(isRight, "\(short): \(found)")
    }
  }

  /// Returns the refusal of an address.
  func refusal(_ short: String) -> DoorAnswer? {
    do throws(DoorAnswer) {
      _ = try door.translate(address(short))
      return nil
    } catch { return error }
  }
}
