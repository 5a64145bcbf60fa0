// swift-tools-version: 6.2
// The targets are in the order of docs/architecture.md's table: who may import whom is read off here.

import PackageDescription

/// A C library of Debian's: a module map and a `shim.h` of one-call inline functions.
func library(_ name: String, pkgConfig: String, package: String) -> Target {
  .systemLibrary(name: name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// What most targets may import.
let words: [Target.Dependency] = ["Platform", "Model", "Telemetry"]

let package = Package(
  name: "Pictor",
  products: [
    .executable(name: "pictor", targets: ["pictor"]),
    .executable(name: "pictor-imager", targets: ["pictor-imager"]),
  ],
  targets: [
    // lld comes with the toolchain, so no other linker is needed; unlike gold, it does not warn of Foundation's mktemp.
    // A linker setting holds for each product that the target is part of.
    .target(
      name: "Platform", dependencies: ["CLinux"],
      linkerSettings: [.unsafeFlags(["-use-ld=lld"])]),
    .target(name: "Model", dependencies: ["Platform"]),
    .target(name: "Telemetry", dependencies: ["Model", "Platform"]),
    .target(name: "Configuring", dependencies: ["Model", "Platform"]),
    .target(name: "Commanding", dependencies: ["Model", "Platform", "Configuring"]),
    .target(name: "Serving", dependencies: words + ["CMicrohttpd", "CGLib", "CReceiving"]),
    .target(name: "Managing", dependencies: words),
    .target(name: "Caching", dependencies: words + ["CGLib", "CDeflate", "CLinux"]),
    .target(name: "Downloading", dependencies: words + ["CCurl", "CGLib", "CDeflate"]),
    .target(name: "ImagingWire", dependencies: ["Model", "Platform", "CLinux"]),
    .target(name: "ImagingPool", dependencies: words + ["ImagingWire", "CLinux"]),
    // Loops over pixels take 50 times as long without optimization: tests would measure nothing else.
    .target(
      name: "ImagingPipeline",
      dependencies: ["Model", "Platform", "ImagingWire", "CVips", "CDeflate", "CJPEG"],
      swiftSettings: [.unsafeFlags(["-O"], .when(configuration: .debug))]),
    .executableTarget(
      name: "pictor",
      dependencies: words + [
        "Configuring", "Commanding", "Serving", "Managing", "Caching", "Downloading", "ImagingPool",
        "ImagingWire",
      ]),
    .executableTarget(
      name: "pictor-imager",
      dependencies: ["Model", "Platform", "ImagingPipeline", "ImagingWire", "CLinux"]),
    .executableTarget(
      name: "benchmark-pipeline",
      dependencies: ["Model", "ImagingPipeline", "ImagingWire", "CVips"],
      path: "benchmarks/pipeline"),

    .executableTarget(
      name: "benchmark-fill", dependencies: words + ["Caching"], path: "benchmarks/fill"),
    .executableTarget(
      name: "benchmark-cache", dependencies: words + ["Caching", "CLinux"],
      path: "benchmarks/cache"),
    // What a hit costs in libmicrohttpd alone; started with the same shim as Serving.
    .executableTarget(
      name: "benchmark-floor", dependencies: ["CMicrohttpd"], path: "benchmarks/floor",
      cSettings: [.headerSearchPath("../../Sources/CMicrohttpd")]),

    // No library but a definition: the program's recv(2).
    .target(name: "CReceiving"),
    .systemLibrary(name: "CLinux"),
    library("CMicrohttpd", pkgConfig: "libmicrohttpd", package: "libmicrohttpd-dev"),
    library("CCurl", pkgConfig: "libcurl", package: "libcurl4-openssl-dev"),
    library("CVips", pkgConfig: "vips", package: "libvips-dev"),
    // libvips-dev brings its header along.
    library("CJPEG", pkgConfig: "libjpeg", package: "libjpeg-dev"),
    library("CGLib", pkgConfig: "glib-2.0", package: "libglib2.0-dev"),
    library("CDeflate", pkgConfig: "libdeflate", package: "libdeflate-dev"),

    // Encoders that libvips has too, without what it leaves out; its -dev package brings their headers along.
    .target(
      name: "CCodecs", path: "Tests/CCodecs",
      linkerSettings: [.linkedLibrary("jpeg"), .linkedLibrary("jxl"), .linkedLibrary("heif")]),
    .target(
      name: "TestSupport", dependencies: ["Model", "Platform", "CVips", "CCodecs"],
      path: "Tests/TestSupport"),
    .target(name: "CAllocations", path: "Tests/CAllocations"),
    // The reference that colours are held to; it comes with libvips-dev.
    .systemLibrary(
      name: "CLcms", path: "Tests/CLcms", pkgConfig: "lcms2",
      providers: [.apt(["liblcms2-dev"])]),
    .testTarget(name: "PlatformTests", dependencies: ["Platform", "TestSupport"]),
    .testTarget(name: "ModelTests", dependencies: ["Model", "TestSupport"]),
    .testTarget(name: "TelemetryTests", dependencies: words),
    .testTarget(name: "ConfiguringTests", dependencies: ["Configuring", "Model", "TestSupport"]),
    .testTarget(
      name: "CommandingTests",
      dependencies: ["Model", "Platform", "Configuring", "Commanding", "TestSupport"]),
    .testTarget(
      name: "ServingTests",
      dependencies: words + ["Serving", "Managing", "Caching", "TestSupport", "CAllocations"]),
    .testTarget(name: "ManagingTests", dependencies: words + ["Managing", "TestSupport"]),
    // Writes to a disk tier until a test kills it.
    .executableTarget(
      name: "disk-writer", dependencies: words + ["Caching"], path: "Tests/DiskWriter"),
    .testTarget(
      name: "CachingTests",
      dependencies: words + ["Caching", "CLinux", "TestSupport", "disk-writer"]),
    .testTarget(
      name: "CacheModelTests", dependencies: words + ["Managing", "Caching", "TestSupport"]),
    // Codes bodies that the downloader decodes.
    .testTarget(
      name: "DownloadingTests", dependencies: words + ["Downloading", "TestSupport", "CDeflate"]),
    .testTarget(
      name: "ImagingWireTests",
      dependencies: ["Model", "Platform", "ImagingWire", "CLinux", "TestSupport"]),
    .testTarget(
      name: "ImagingPoolTests",
      dependencies: words + ["ImagingPool", "ImagingWire", "TestSupport", "pictor-imager"]),
    .testTarget(
      name: "ImagingPipelineTests",
      dependencies: ["Model", "ImagingPipeline", "ImagingWire", "TestSupport", "CLcms"]),
    .testTarget(
      name: "IntegrationTests",
      dependencies: words + ["Configuring", "CLinux", "TestSupport", "pictor", "pictor-imager"]),
  ]
)
