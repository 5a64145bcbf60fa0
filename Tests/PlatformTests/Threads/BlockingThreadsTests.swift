// BlockingThreadsTests: calls that block, and the threads that run them.

import Core
import TestSupport
import Testing

@Suite(.onOwnThreads) struct BlockingThreadsTests {
  @Test func `as many calls run at once as there may be threads, however they arrive`() async {
    for _ in 0..<300 {
      let threads = BlockingThreads(name: "test", threads: 4, deadline: .seconds(60))
      let running = Monitor(0)
      let together = await withTaskGroup(of: Bool?.self) { group in
        for _ in 0..<4 {
          group.addTask {
            // Each call waits for the others.
            try? await threads.value {
              running.change { $0 += 1 }
              return running.wait(for: .seconds(30)) { $0 == 4 ? true : nil } ?? false
            }
          }
        }
        return await group.allSatisfy { $0 == true }
      }
      #expect(together)
      #expect(threads.finish(within: .seconds(30)))
    }
  }
}
