// The version of the program, in one place.

/// Semantic version (semver.org) of server and worker; also in `CHANGELOG.md`.
public let pictorVersion = "0.1.0"
