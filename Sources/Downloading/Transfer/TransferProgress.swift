// TransferProgress: how far a transfer came, for a diagnosis of its source.

import CCurl
import Core

extension Transfer {
  /// The times of the current hop, which curl has or had.
  var hopTimings: Timings {
    var times = easy.timings
    times.dns = times.dns.map { $0 + hop.lookUpTime }
    return times
  }

  /// How far the load came. The current hop may have failed, or still run.
  var progress: LoadProgress {
    var progress = LoadProgress(url: hop.target.url)
    progress.timings = timings
    progress.redirects = redirects.count
    progress.retries = retries
    progress.status = hop.head.isComplete ? hop.response.status : nil
    // Before that, curl's numbers are those of the hop before.
    guard let launched = hop.launched else { return progress }
    if !launched.isTimed { progress.timings.add(hopTimings) }
    progress.addresses = launched.addresses
    // curl sets the time of a connection only once its TLS is done (7.88).
    progress.isConnected = easy.number(CURLINFO_NUM_CONNECTS) > 0
    progress.isSecured = easy.offset(CURLINFO_APPCONNECT_TIME_T) > 0
    return progress
  }
}
