// OperatorGateTests: which operator a token belongs to, and what guesses cost.

@testable import Core
import TestSupport
import Testing

@testable import Serving

@Suite struct OperatorGateTests {
  private let operators = [
    Operator(name: "first", token: "aaaaaaaaaaaaaaaa", scopes: [.read]),
    Operator(name: "longer", token: "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", scopes: [.purge]),
    Operator(name: "last", token: "correct-horse-battery", scopes: [.write]),
  ]
  private let client = IPAddress.v4(0xc633_6407)

  private func name(
    _ field: String?, by gate: OperatorGate, from client: IPAddress? = nil, at now: Int = 0
  ) -> String {
    let bytes = field.map { Array($0.utf8) }
    let verdict = bytes.map { bytes in
      bytes.withUnsafeBytes { gate.verdict(on: $0, from: client ?? self.client, at: now) }
    }
    switch verdict ?? gate.verdict(on: nil, from: client ?? self.client, at: now) {
    case .known(let found): return found.name
    case .missing, .wrong: return "unknown"
    case .limited(let seconds): return "limited \(seconds)"
    }
  }

  @Test func `each token names its operator, and a part or multiple of it nobody`() {
    for found in operators {
      let gate = OperatorGate(operators)
      #expect(name("Bearer " + found.token, by: gate) == found.name)
      #expect(name("bEaReR " + found.token, by: gate) == found.name)
      let wrong = [
        "", found.token, "Bearer", "Bearer ", "Basic " + found.token, "Bearer  " + found.token,
        "Bearer " + found.token + "a", "Bearer " + String(found.token.dropLast()),
        "Bearer " + found.token + found.token + found.token,
      ]
      for field in wrong {
        // A gate each, because ten wrong tokens are too many.
        #expect(name(field, by: OperatorGate(operators)) == "unknown", "\(field)")
      }
    }
  }

  @Test func `no change of a byte leaves a token valid`() {
    for found in operators {
      for place in found.token.utf8.indices {
        for byte in UInt8(0x21)...0x7e where byte != found.token.utf8[place] {
          var token = Array(found.token.utf8)
          token[found.token.utf8.distance(from: found.token.utf8.startIndex, to: place)] = byte
          let gate = OperatorGate(operators)
          #expect(name("Bearer " + String(decoding: token, as: UTF8.self), by: gate) == "unknown")
        }
      }
    }
  }

  @Test func `requests without a token and valid tokens are not counted`() {
    let gate = OperatorGate(operators)
    for _ in 0..<30 {
      #expect(name(nil, by: gate) == "unknown")
      // A name and a password for the origin.
      #expect(name("Basic dXNlcjpwYXNz", by: gate) == "unknown")
      #expect(name("Bearer aaaaaaaaaaaaaaaa", by: gate) == "first")
    }
  }

  @Test func `replaced operators take effect at once`() {
    let gate = OperatorGate([])
    #expect(!gate.hasOperators && name("Bearer aaaaaaaaaaaaaaaa", by: gate) == "unknown")
    gate.set(operators)
    #expect(gate.hasOperators && name("Bearer aaaaaaaaaaaaaaaa", by: gate) == "first")
    gate.set([operators[2]])
    #expect(name("Bearer aaaaaaaaaaaaaaaa", by: gate) == "unknown")
  }

  @Test func `an operator's description does not contain the token`() {
    #expect("\(operators)" == "[first, longer, last]")
  }
}
