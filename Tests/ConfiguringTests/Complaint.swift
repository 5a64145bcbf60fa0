// Complaint: what is said of something that is not allowed.

/// The error as people read it, or `nothing`.
func complaint(_ body: () throws -> Void) -> String {
  do {
    try body()
    return "nothing"
  } catch {
    return "\(error)"
  }
}
