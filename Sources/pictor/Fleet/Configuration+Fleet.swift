// Configuration+Fleet: the configuration of a fleet, with its address resolved.

import Core
import Sharing

extension Configuration {
  /// Returns the fleet's configuration; `nil` without a fleet. Adds a bad address to `problems`.
  func fleetConfiguration(
    folder: String?, environment: [String: String], _ problems: inout ConfigurationProblems
  ) -> FleetConfiguration? {
    let bucket = bucketConfiguration(environment: environment, &problems)
    guard let setting = fleet.redis else { return nil }
    let address = problems.collect { () throws(ConfigurationError) in
      let text = try setting.value(environment: environment, at: "fleet.redis")
      guard let address = RedisAddress(text) else {
        throw ConfigurationError(
          at: "fleet.redis", "\(setting.text) is not \(RedisAddress.allowed)")
      }
      return address
    }
    return address.map { address in
      var result = FleetConfiguration(address: address, settings: fleet, folder: folder)
      result.bucket = bucket
      return result
    }
  }

  /// Returns the bucket that machines share; `nil` without one. Adds bad keys to `problems`.
  private func bucketConfiguration(
    environment: [String: String], _ problems: inout ConfigurationProblems
  ) -> S3Configuration? {
    var settings = fleet.bucket
    if let (key, problem) = settings.conflict(hasRedis: fleet.redis != nil) {
      problems.add(at: key, problem)
      return nil
    }
    guard settings.isOn else { return nil }
    // An entry is up to 64 times as large as those of Redis.
    settings.timeout = fleet.timeout * 5
    return problems.collect { () throws(ConfigurationError) in
      try requireAuthorities(settings.caFile, at: "fleet.s3.ca_file")
      let credentials = try settings.credentials(environment: environment)
      do throws(ImageError) {
        var configuration = try S3Configuration(settings, credentials: credentials)
        configuration.retryInterval = fleet.retryInterval
        return configuration
      } catch {
        throw ConfigurationError(at: "fleet.s3.endpoint", error.message)
      }
    }
  }
}
