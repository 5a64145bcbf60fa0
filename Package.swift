// swift-tools-version: 6.2
// The targets are in the order of docs/architecture.md's table: who may import whom is read off here.

import PackageDescription

/// A C library of Debian's: a module map and a `shim.h` of one-call inline functions.
func library(_ name: String, pkgConfig: String, package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// What most targets may import.
let words: [Target.Dependency] = ["Model", "Platform", "Telemetry"]

let package = Package(
  name: "Pictor",
  products: [
    .executable(name: "pictor", targets: ["pictor"]),
    .executable(name: "pictor-imager", targets: ["pictor-imager"]),
  ],
  targets: [
    .target(name: "Model"),
    .target(name: "Platform", dependencies: ["Model", "CLinux"]),
    .target(name: "Telemetry", dependencies: ["Platform"]),
    .target(name: "Configuring", dependencies: ["Model"]),
    .target(name: "Serving", dependencies: words + ["CMicrohttpd"]),
    .target(name: "Managing", dependencies: words),
    .target(name: "Caching", dependencies: words + ["CGLib", "CZlib"]),
    .target(name: "Downloading", dependencies: words + ["CCurl"]),
    .target(name: "ImagingWire", dependencies: ["Model", "Platform", "CLinux"]),
    .target(name: "ImagingPool", dependencies: words + ["ImagingWire", "CLinux"]),
    .target(name: "ImagingPipeline", dependencies: ["Model", "ImagingWire", "CVips"]),
    .executableTarget(
      name: "pictor",
      dependencies: words + [
        "Configuring", "Serving", "Managing", "Caching", "Downloading", "ImagingPool",
        "ImagingWire",
      ]),
    .executableTarget(
      name: "pictor-imager",
      dependencies: ["Model", "Platform", "ImagingPipeline", "ImagingWire", "CLinux"]),

    .systemLibrary(name: "CLinux"),
    library("CMicrohttpd", pkgConfig: "libmicrohttpd", package: "libmicrohttpd-dev"),
    library("CCurl", pkgConfig: "libcurl", package: "libcurl4-openssl-dev"),
    library("CVips", pkgConfig: "vips", package: "libvips-dev"),
    library("CGLib", pkgConfig: "glib-2.0", package: "libglib2.0-dev"),
    library("CZlib", pkgConfig: "zlib", package: "zlib1g-dev"),

    .target(
      name: "TestSupport", dependencies: ["Model", "Platform", "CVips"],
      path: "Tests/TestSupport"),
    .testTarget(name: "ModelTests", dependencies: ["Model"]),
    .testTarget(name: "TelemetryTests", dependencies: ["Telemetry"]),
    .testTarget(name: "ConfiguringTests", dependencies: ["Configuring"]),
    .testTarget(name: "ServingTests", dependencies: words + ["Serving", "TestSupport"]),
    .testTarget(name: "ManagingTests", dependencies: words + ["Managing"]),
    .testTarget(name: "CachingTests", dependencies: words + ["Caching", "TestSupport"]),
    .testTarget(name: "DownloadingTests", dependencies: words + ["Downloading", "TestSupport"]),
    .testTarget(
      name: "ImagingWireTests",
      dependencies: ["Model", "Platform", "ImagingWire", "CLinux", "TestSupport"]),
    .testTarget(
      name: "ImagingPoolTests",
      dependencies: words + ["ImagingPool", "ImagingWire", "TestSupport", "pictor-imager"]),
    .testTarget(
      name: "ImagingPipelineTests",
      dependencies: ["Model", "ImagingPipeline", "ImagingWire", "TestSupport"]),
    .testTarget(
      name: "IntegrationTests",
      dependencies: words + ["Configuring", "TestSupport", "pictor", "pictor-imager"]),
  ]
)
