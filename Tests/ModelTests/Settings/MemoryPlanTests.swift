// MemoryPlanTests: tests of the memory shares of MemoryPlan.

import Model
import Testing

struct MemoryPlanTests {
  @Test func `much memory gives each part what it has use for`() {
    for room in [4 << 30, 64 << 30, Int.max] {
      let plan = MemoryPlan(room: room, cores: 4)
      #expect(plan.memoryTier == 256 << 20)
      #expect(plan.writeQueue == 64 << 20)
      #expect(plan.bodies(ofAtMost: 64 << 20) == 512 << 20)
      #expect(plan.workers == 4)
      #expect(plan.workerMemory == 2 << 30)
      #expect(plan.retireAbove == 256 << 20)
    }
  }

  @Test(arguments: [128, 300, 512, 768, 1_024, 2_048])
  func `little memory is shared so that the server leaves room for one worker`(mebibytes: Int) {
    let room = mebibytes << 20
    let plan = MemoryPlan(room: room, cores: 64)
    #expect((1...max(room / (160 << 20), 1)).contains(plan.workers))
    #expect(plan.workerMemory >= 64 << 20)
    let server = plan.memoryTier + plan.writeQueue + plan.bodies(ofAtMost: 1 << 20)
    #expect(server + plan.workerMemory <= room * 7 / 8)
  }

  @Test func `one body of the greatest length has room at least`() {
    #expect(MemoryPlan(room: 300 << 20, cores: 1).bodies(ofAtMost: 64 << 20) == 64 << 20)
  }
}
