// Complaint: the expected errors of invalid settings.

/// The error as people read it, or `nothing`.
func complaint(_ body: () throws -> Void) -> String {
  do {
    try body()
    return "nothing"
  } catch {
    return "\(error)"
  }
}
