// WorkerOptionsTests: the command line of a worker.

import Core
import Sandboxing
import Testing

struct WorkerOptionsTests {
  @Test func `a server's command line is read`() throws {
    let options = try #require(
      WorkerOptions(
        arguments: [
          "--worker", "--nice", "5", "--memory", "1000", "--file-size", "20", "--sandbox",
          "required",
        ]))
    #expect(options.niceness == 5)
    #expect(options.memory == 1_000)
    #expect(options.fileSize == 20)
    #expect(options.sandbox == .required)
  }

  @Test(arguments: [
    [], ["--nice", "5"], ["--worker", "--nice", "20"], ["--worker", "--memory", "0"],
    ["--worker", "--sandbox"], ["--worker", "--sandbox", "maybe"], ["--worker", "--else", "1"],
  ])
  func `any other command line is refused`(arguments: [String]) {
    #expect(WorkerOptions(arguments: arguments) == nil)
  }
}
