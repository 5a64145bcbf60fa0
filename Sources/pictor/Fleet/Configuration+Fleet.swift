// Configuration+Fleet: the configuration of a fleet, with its address resolved.

import Configuring
import Model
import Sharing

extension Configuration {
  /// Returns the fleet's configuration, or `nil` without a fleet. Adds an address that cannot be used to `problems`.
  func fleetConfiguration(
    folder: String?, environment: [String: String], _ problems: inout ConfigurationProblems
  ) -> FleetConfiguration? {
    guard let setting = fleet.redis else { return nil }
    let address = problems.collect { () throws(ConfigurationError) in
      let text = try setting.value(environment: environment, at: "fleet.redis")
      guard let address = RedisAddress(text) else {
        throw ConfigurationError(
          at: "fleet.redis", "\(setting.text) is not \(RedisAddress.allowed)")
      }
      return address
    }
    return address.map { FleetConfiguration(address: $0, settings: fleet, folder: folder) }
  }
}
