// DoctorCommand: prints what a running server meets when it loads a source.

import Core
import FoundationEssentials

extension OperatorCommand {
  /// `pictor doctor URL`: lets the server load the source, and prints each step. Returns the exit
  /// status: 0 if all succeeded, otherwise 1.
  public func doctor(_ order: DoctorOrder) -> CInt {
    run(needing: [.write]) { client throws(CommandFailure) in
      // Longer than the server takes, so that its answer arrives.
      let seconds = configuration.server.requestTimeout.flooredSeconds + 5
      let body = try client.report(
        .post, at: "/admin/doctor?url=" + PercentEncoding.encode(order.url), seconds: seconds)
      guard let diagnosis = try? JSONDecoder().decode(Diagnosis.self, from: Data(body)) else {
        throw CommandFailure(description: "the server's answer is not a diagnosis")
      }
      console.output(
        order.isJSON ? PrefetchReport.printableJSON(body) + "\n" : Self.table(diagnosis))
      return diagnosis.ok ? 0 : 1
    }
  }

  private static func table(_ diagnosis: Diagnosis) -> String {
    let rows = diagnosis.steps.map { step in
      [
        step.ok ? "ok" : "FAILED", step.step.rawValue, step.ms.map { "\($0)" } ?? "",
        PrefetchReport.printable(step.found), PrefetchReport.printable(step.rule),
      ]
    }
    return Console.table([["", "step", "ms", "found", "decided by"]] + rows)
  }
}
