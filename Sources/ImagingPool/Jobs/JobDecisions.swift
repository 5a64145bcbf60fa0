// JobDecisions: what the scheduler decides about jobs and slots.

import Glibc
import Model

extension JobScheduler {
  /// The result of submitting a job.
  enum Admission {
    /// A slot is idle and must be woken. The job goes before all others, regardless of its
    /// priority, unless it is expensive.
    case next(wake: Int)
    /// The job is queued. `raise` can move it forward.
    case waits
    /// The job is refused.
    case refused(ImageError)
  }

  /// The next action of a slot.
  enum Next {
    /// Perform this job.
    case job(UInt64, Job)
    /// Wait for a signal. `wake` is an idle slot to wake for a job that this slot cannot take.
    case wait(wake: Int?)
    /// Stop the worker and end the slot.
    case leave
  }

  /// Changes that a slot with a job must obey.
  struct Orders: Equatable {
    /// Whether the job was cancelled or answered.
    var isAbandoned = false
    /// Whether the worker must be stopped and the job queued again, because it takes long and others wait.
    var givesWay = false
    /// When the worker must be stopped, even with a job.
    var stopAt: ContinuousClock.Instant?
  }

  /// The state of a slot, besides its job.
  struct Slot {
    /// The ready worker, if any.
    var pid: pid_t?
    /// Resident memory of the worker after its last job, in bytes.
    var residentBytes = 0
    /// Why no worker could start. Cleared by the next successful start.
    var fault: String?
    /// Whether a job has been sent to the worker; for tests.
    var isBusy = false
  }
}
