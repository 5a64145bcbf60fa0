// StandardStreams: keeps the numbers of standard input, output and error for themselves.

import Glibc

/// The descriptors 0, 1 and 2.
public enum StandardStreams {
  /// Opens `/dev/null` for reading in place of each stream that is closed. Call it first of all.
  ///
  /// Else the next file or socket that is opened gets the number of the stream, and the log is
  /// written into it. A stream that is filled in takes no output.
  public static func fill() {
    for stream in [STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO]
    where fcntl(stream, F_GETFD) < 0 && errno == EBADF {
      // The lowest free number, which is the stream's.
      _ = open("/dev/null", O_RDONLY)
    }
  }
}
