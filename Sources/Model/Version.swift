// Version: the version of the program.

/// The semantic version (semver.org) of the server and the imaging worker; also in `CHANGELOG.md`.
public let pictorVersion = "0.1.0"
