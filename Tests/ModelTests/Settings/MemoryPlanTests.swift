// MemoryPlanTests: tests of the memory shares of MemoryPlan.

import Core
import Testing

struct MemoryPlanTests {
  @Test func `with much memory each part gets its maximum`() {
    for room in [4 << 30, 64 << 30, Int.max] {
      let plan = MemoryPlan(room: room, cores: 4)
      #expect(plan.memoryTier == 256 << 20)
      #expect(plan.responses == 256 << 20)
      #expect(plan.writeQueue == 64 << 20)
      #expect(plan.bodies(ofAtMost: 64 << 20) == 512 << 20)
      #expect(plan.workers == 4)
      #expect(plan.workerMemory == 2 << 30)
      #expect(plan.retireAbove == 256 << 20)
      #expect(plan.knownTargets == 262_144)
    }
    #expect(MemoryPlan(room: 512 << 20, cores: 4).knownTargets == 32_768)
  }

  @Test(arguments: [128, 300, 512, 768, 1_024, 2_048])
  func `little memory is divided so that one worker fits beside the server`(mebibytes: Int) {
    let room = mebibytes << 20
    let plan = MemoryPlan(room: room, cores: 64)
    #expect((1...max(room / (160 << 20), 1)).contains(plan.workers))
    #expect(plan.workerMemory >= 64 << 20)
    let server =
      plan.memoryTier + plan.responses + plan.writeQueue
      + plan.bodies(ofAtMost: 1 << 20)
    #expect(server + plan.workerMemory <= room * 7 / 8)
  }

  @Test(arguments: [128, 300, 512, 768, 1_024, 2_048, 65_536])
  func `the parts and the jobs share the budget`(mebibytes: Int) {
    let plan = MemoryPlan(room: mebibytes << 20, cores: 4)
    let parts =
      plan.memoryTier + plan.responses + plan.writeQueue + plan.bodies(ofAtMost: 1 << 20)
    #expect(abs(plan.budget - (mebibytes << 20) / 10 * 7) < 10)
    let jobs = plan.jobs(beside: parts, workers: plan.workers)
    #expect(jobs >= plan.workers * (64 << 20))
    #expect(mebibytes < 1_024 || parts + jobs == plan.budget)
    // A budget gives the same shares as the memory that has it by default.
    let same = MemoryPlan(budget: plan.budget, cores: 4)
    #expect(abs(same.memoryTier - plan.memoryTier) < 10)
  }

  @Test(arguments: [
    (300, 1, 71), (512, 1, 166), (512, 3, 192), (1_024, 1, 332), (1_024, 6, 384), (4_096, 4, 1_779),
  ])
  func `the table in docs/operations.md names what jobs have`(
    mebibytes: Int, workers: Int, jobs: Int
  ) {
    let plan = MemoryPlan(room: mebibytes << 20, cores: 64)
    let parts =
      plan.memoryTier + plan.responses + plan.writeQueue + plan.bodies(ofAtMost: 64 << 20)
    #expect(plan.jobs(beside: parts, workers: workers) >> 20 == jobs)
  }

  @Test func `jobs have no limit where the memory is unknown`() {
    #expect(MemoryPlan.unlimited().jobs(beside: 1 << 30, workers: 3) == .max)
  }

  @Test func `the largest permitted body always fits`() {
    #expect(MemoryPlan(room: 300 << 20, cores: 1).bodies(ofAtMost: 64 << 20) == 64 << 20)
  }
}
