// ImagingAccount: the port through which imaging workers charge their time to the client who caused it.

/// What the imaging time of a client's requests is charged to.
public protocol ImagingAccount: Sendable {
  /// Charges time that a worker spent. Called on any thread; must not block.
  func charge(_ time: Duration)
}

/// The account of the current task.
public enum ImagingAccounts {
  /// The account of the client whose request the task works for; `nil` if there is none.
  ///
  /// A flight has the account of the request that began it. Requests that join it cost nothing.
  @TaskLocal public static var current: (any ImagingAccount)?
}
