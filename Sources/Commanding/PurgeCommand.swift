// PurgeCommand: purges the subjects of the command line from a running server's cache.

import Core
import FoundationEssentials
import Requesting

extension OperatorCommand {
  /// The used part of the server's answer.
  private struct Purged: Decodable {
    let purged: PurgeReport
  }

  /// Deadline in seconds for one purge. The server may have to check all entries in memory and
  /// empty the disk tier.
  private static let purgingTime = 60

  /// `pictor purge …`: runs the purges, with a line of output for each. Returns the exit status: 0
  /// if all succeeded, otherwise 1 with lines on standard error. After a refused purge the next one
  /// is tried; after a failed connection the command ends.
  public func purge(_ subjects: [PurgeSubject]) -> CInt {
    run(needing: [.purge]) { purge(subjects, by: $0) }
  }

  private func purge(_ subjects: [PurgeSubject], by client: ServerClient) -> CInt {
    var status: CInt = 0
    for subject in subjects {
      do throws(ServerClient.Failure) {
        let answer = try client.request(
          subject.method, target: subject.target, seconds: Self.purgingTime)
        let report =
          answer.status == 200
          ? try? JSONDecoder().decode(Purged.self, from: Data(answer.body)) : nil
        if let report {
          console.output("\(subject.name): \(report.purged.summary)\n")
        } else {
          console.reportError("\(subject.name): \(answer.refusal(client))")
          status = 1
        }
      } catch {
        console.reportError("\(subject.name): \(error.description)")
        return 1
      }
    }
    return status
  }
}

extension PurgeSubject {
  fileprivate var method: ServerRequest.Method { self == .everything ? .post : .delete }

  /// The parameter of the request, with its value; `nil`: everything.
  private var parameter: (name: String, value: String)? {
    switch self {
    case .url(let text): ("url", text)
    case .prefix(let text): ("prefix", text)
    case .host(let text): ("host", text)
    case .tag(let text): ("tag", text)
    case .everything: nil
    }
  }

  fileprivate var target: String {
    parameter.map { "/admin/cache?\($0.name)=" + PercentEncoding.encode($0.value) }
      ?? "/admin/cache/clear?tier=all"
  }

  /// The subject as shown in messages.
  fileprivate var name: String {
    parameter.map { ($0.name == "url" ? "" : $0.name + " ") + PrefetchReport.printable($0.value) }
      ?? "everything"
  }
}

extension PurgeReport {
  /// Returns, for example, `purged: 2 in memory, 3 on disk, 1 remembered failure`.
  fileprivate var summary: String {
    let inMemory = memory.map { "\($0) in memory" } ?? "the search in memory continues"
    let onDisk = disk.map { "\($0) on disk" } ?? "the search on disk continues"
    let failures = "\(failed) remembered failure" + (failed == 1 ? "" : "s")
    return "purged: \(inMemory), \(onDisk), \(failures)"
  }
}
