// LiveKeysTests: which values a reload takes over.

import Testing

@testable import Core

@Suite struct LiveKeysTests {
  @Test func `a reload takes the live keys over, and keeps all others`() throws {
    var wanted = Configuration()
    try wanted.apply(
      json5:
        """
        {
          server: { port: 9000, allow: ["refresh"], cors_origin: ["https://a.example"],
            size_steps: [100, 200], requests_per_second: 7, trusted_proxies: ["10.0.0.0/8"] },
          hosts: [{ host: "*.example.com", headers: { "X-Key": "env:KEY" }, drop_parameters: ["t"] }],
          presets: { thumb: "w=1&background=\\"x\\"" }, fallbacks: { gone: "local:///g.svg" },
          admin: { tokens: ["0123456789abcdef", { name: "a", token: "env:T", scopes: ["read"] }] },
          signing: { mode: "options", keys: ["a:file:/key", "b:0123456789abcdef0123456789abcdef"] },
          download: { allow_hosts: ["*.example.com:8443"], ports: [80, "8000-8999"], timeout: "1s" },
          imaging: { auto_formats: [], workers: 3 }, failures: { ttl: ["404=10m"] },
          freshness: { maximum_lifetime: "1d" }, log: { format: "json", level: "error" },
          memory: { limit: "1GiB" }, disk: { maximum_age: "never" },
        }
        """, file: "pictor.json5")
    let reloaded = Configuration().reloaded(from: wanted)
    for key in Configuration.keys {
      let expected = key.literal(in: key.isLive ? wanted : Configuration())
      #expect(key.literal(in: reloaded) == expected, "\(key.path)")
    }
    #expect(reloaded.presets == wanted.presets && reloaded.signing == wanted.signing)
    #expect(reloaded.hosts == wanted.hosts && !wanted.hosts.isEmpty)
    #expect(Configuration.keys.count(where: \.isLive) == 82)
  }
}
