// swift-tools-version: 6.2
// The targets are in the order of docs/architecture.md's table: who may import whom is read off here.

import PackageDescription

/// A C library of Debian's: a module map and a `shim.h` of one-call inline functions.
func library(_ name: String, pkgConfig: String, package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

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
    .target(name: "Serving", dependencies: ["Model", "Telemetry", "CMicrohttpd"]),
    .target(name: "Managing", dependencies: ["Model", "Platform", "Telemetry"]),
    .target(
      name: "Caching", dependencies: ["Model", "Platform", "Telemetry", "CGLib", "CZlib"]),
    .target(name: "Downloading", dependencies: ["Model", "Platform", "Telemetry", "CCurl"]),
    .target(name: "ImagingWire", dependencies: ["Model", "CLinux"]),
    .target(
      name: "ImagingPool",
      dependencies: ["Model", "Platform", "Telemetry", "ImagingWire", "CLinux"]),
    .target(name: "ImagingPipeline", dependencies: ["Model", "ImagingWire", "CVips"]),
    .executableTarget(
      name: "pictor",
      dependencies: [
        "Model", "Platform", "Telemetry", "Configuring", "Serving", "Managing", "Caching",
        "Downloading",
        "ImagingPool", "ImagingWire",
      ]),
    .executableTarget(
      name: "pictor-imager", dependencies: ["Model", "Platform", "ImagingPipeline", "ImagingWire", "CLinux"]),

    .systemLibrary(name: "CLinux"),
    library("CMicrohttpd", pkgConfig: "libmicrohttpd", package: "libmicrohttpd-dev"),
    library("CCurl", pkgConfig: "libcurl", package: "libcurl4-openssl-dev"),
    library("CVips", pkgConfig: "vips", package: "libvips-dev"),
    library("CGLib", pkgConfig: "glib-2.0", package: "libglib2.0-dev"),
    library("CZlib", pkgConfig: "zlib", package: "zlib1g-dev"),

    .target(name: "TestSupport", dependencies: ["Model", "Platform", "CVips"], path: "Tests/TestSupport"),
    .testTarget(name: "ModelTests", dependencies: ["Model"]),
    .testTarget(name: "TelemetryTests", dependencies: ["Telemetry"]),
    .testTarget(name: "ConfiguringTests", dependencies: ["Configuring"]),
    .testTarget(
      name: "ServingTests", dependencies: ["Serving", "Model", "Telemetry", "TestSupport"]),
    .testTarget(name: "ManagingTests", dependencies: ["Managing", "Model", "Platform"]),
    .testTarget(name: "CachingTests", dependencies: ["Caching", "TestSupport"]),
    .testTarget(name: "DownloadingTests", dependencies: ["Downloading", "TestSupport"]),
    .testTarget(name: "ImagingWireTests", dependencies: ["ImagingWire", "Model", "CLinux", "TestSupport"]),
    .testTarget(
      name: "ImagingPoolTests", dependencies: ["ImagingPool", "TestSupport", "pictor-imager"]),
    .testTarget(name: "ImagingPipelineTests", dependencies: ["ImagingPipeline", "TestSupport"]),
    .testTarget(
      name: "IntegrationTests",
      dependencies: ["Model", "Telemetry", "TestSupport", "pictor", "pictor-imager"]),
  ]
)
