// URLSignerTests: tests of signing, verification and rotation, and of the documented test vectors.

import FoundationEssentials
import TestSupport
import Testing

@testable import Core

@Suite struct URLSignerTests {
  private let first = SigningKey(id: "first", secret: String(repeating: "a", count: 32))
  private let second = SigningKey(id: "second", secret: String(repeating: "b", count: 32))

  private func text(_ query: String, path: String = "/image") throws -> SignedText {
    try #require(SignedText(path: path, query: Array(query.utf8)))
  }

  private func fault(of query: String, keys: [SigningKey]) throws -> SignatureFault? {
    let text = try text(query)
    do throws(SignatureFault) {
      try URLSigner(keys: keys).verify(text)
      return nil
    } catch {
      return error
    }
  }

  private func sig(_ query: String, by key: SigningKey) throws -> String {
    try #require(try URLSigner(keys: [key]).sign(text(query)))
  }

  @Test func `the first key signs, and all keys are accepted, with and without their id`() throws {
    let signer = URLSigner(keys: [first, second])
    #expect(try signer.sign(text("w=3"))?.hasPrefix("first.") == true)
    #expect(try signer.sign(text("w=3"), with: "second")?.hasPrefix("second.") == true)
    #expect(try signer.sign(text("w=3"), with: "third") == nil)
    for key in [first, second] {
      let signature = try sig("w=3", by: key)
      for given in [signature, String(signature.suffix(URLSigner.signatureLength))] {
        #expect(try fault(of: "w=3&sig=\(given)", keys: [first, second]) == nil)
        #expect(try fault(of: "sig=\(given)&w=%33", keys: [second, first]) == nil)
      }
    }
  }

  @Test func `a key that was removed is no longer accepted`() throws {
    let signature = try sig("w=3", by: first)
    let bare = signature.suffix(URLSigner.signatureLength)
    #expect(try fault(of: "w=3&sig=\(signature)", keys: [second]) == .unknownKey)
    #expect(try fault(of: "w=3&sig=\(bare)", keys: [second]) == .mismatch)
    #expect(try fault(of: "w=3&sig=\(bare)", keys: []) == .mismatch)
    // A signature by another key under the id of a known one
    #expect(try fault(of: "w=3&sig=second.\(bare)", keys: [second, first]) == .mismatch)
  }

  @Test func `a signature of another form is refused`() throws {
    let bare = String(try sig("w=3", by: first).suffix(URLSigner.signatureLength))
    for wrong in [
      "", ".", bare + "=", String(bare.dropLast()), bare + "A", "first." + bare.dropLast(),
      "first." + bare + "%3D", "a.first." + bare, "first..", "first." + bare + ".",
    ] {
      #expect(try fault(of: "w=3&sig=\(wrong)", keys: [first]) == .malformed, "\(wrong)")
    }
    for wrong in ["." + bare, "First." + bare, "other." + bare] {
      #expect(try fault(of: "w=3&sig=\(wrong)", keys: [first]) == .unknownKey, "\(wrong)")
    }
    #expect(try fault(of: "w=3", keys: [first]) == .missing)
    #expect(
      try fault(of: "w=3&sig=first.\(String(repeating: "é", count: 43))", keys: [first])
        == .malformed)
  }

  /// The last of 43 characters has two of its six bits to spare: four texts, the same bytes.
  @Test func `each bit of a signature counts, also those without a meaning`() throws {
    let signature = try sig("w=3", by: first)
    let digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    let start = signature.index(signature.startIndex, offsetBy: "first.".count)
    for index in signature[start...].indices {
      for digit in digits where digit != signature[index] {
        var changed = signature
        changed.replaceSubrange(index...index, with: String(digit))
        #expect(try fault(of: "w=3&sig=\(changed)", keys: [first]) == .mismatch)
      }
    }
  }

  @Test func `no text of a key contains its secret`() {
    let key = SigningKey(id: "main", secret: "s3cr3t-s3cr3t-s3cr3t-s3cr3t-s3cr3t")
    var dumped = ""
    dump(URLSigner(keys: [key]), to: &dumped)
    for text in ["\(key)", String(reflecting: key), "\(URLSigner(keys: [key]))", dumped] {
      #expect(!text.contains("s3cr3t") && !text.contains("115, 51") && text.contains("main"))
    }
  }

  private struct Vectors: Decodable {
    struct Vector: Decodable {
      let key, path, text, sig: String
      let parameters: [[String]]
    }
    let keys: [String: String]
    let vectors: [Vector]
  }

  @Test func `the vectors of the documentation are signed and accepted`() throws {
    let path = #filePath.split(separator: "/").dropLast(3).joined(separator: "/")
    let document = try String(
      contentsOf: URL(filePath: "/\(path)/docs/signing.md"), encoding: .utf8)
    let block = try #require(
      document.split(separator: "```json\n").last?.split(separator: "```").first)
    let documented = try JSONDecoder().decode(Vectors.self, from: Data(block.utf8))
    #expect(documented.vectors.count >= 5)
    let signer = URLSigner(
      keys: documented.keys.map { SigningKey(id: $0.key, secret: $0.value) })
    for vector in documented.vectors {
      let query = vector.parameters.map {
        PercentEncoding.encode($0[0]) + "=" + PercentEncoding.encode($0[1])
      }.joined(separator: "&")
      let signed = try text(query, path: vector.path)
      #expect(signed.text == vector.text)
      #expect(signer.sign(signed, with: vector.key) == vector.sig)
      try signer.verify(try text("sig=\(vector.sig)&\(query)", path: vector.path))
    }
  }
}
