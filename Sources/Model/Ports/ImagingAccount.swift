// ImagingAccount: the port through which the work for a request is counted as its client's.

/// What the work of a client's requests is charged to: the time of imaging workers, and downloads.
public protocol ImagingAccount: Sendable {
  /// Whose share of downloads the loads take.
  var client: LoadClient { get }
  /// Charges time that a worker spent. Called on any thread; must not block.
  func charge(_ time: Duration)
}

/// The account of the current task.
public enum ImagingAccounts {
  /// The account of the client whose request the task works for; `nil` if no client waits.
  ///
  /// A flight has the account of the request that began it. Its imaging costs requests that join it
  /// nothing. Its download may count as that of any of them (`WorkPriority.observeClients`).
  @TaskLocal public static var current: (any ImagingAccount)?
}
