// swift-tools-version: 6.2
// The targets are in the order of docs/architecture.md's table: who may import whom is read off here.

import Foundation
import PackageDescription

/// A C library of Debian's: a module map and a `shim.h` of one-call inline functions.
func library(_ name: String, pkgConfig: String? = nil, package: String) -> Target {
  .systemLibrary(
    name: name, path: "Sources/C/" + name, pkgConfig: pkgConfig, providers: [.apt([package])])
}

/// The thread sanitizer's build. It is not optimized: inlined parts of the standard library's arrays would be
/// checked, and the counted references that order their use would not, so copies under a lock look like races.
let isSanitized = Context.environment["PICTOR_SANITIZED"] != nil
/// What takes too long without, under the sanitizer as well: its threads share no arrays that change.
let always: [SwiftSetting] = [.unsafeFlags(["-O"], .when(configuration: .debug))]
/// Settings of targets whose code takes most of the tests' time. Without optimization, loops over pixels take 50 times as
/// long, and all tests together twice as long: tests would measure nothing else. The target keeps its internal names for
/// `@testable`.
let optimized: [SwiftSetting] = isSanitized ? [] : always

/// Folders below `place` that another target has. SwiftPM warns of each that a target of several folders does not exclude.
func folders(below place: String, but own: [String]) -> [String] {
  let path = Context.packageDirectory + "/" + place
  return ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? [])
    .filter { !own.contains($0) }.sorted()
}

let core = ["Platform", "Model", "Telemetry", "Signing", "Configuring", "ImagingWire"]
let coreTests = core.map { $0 + "Tests" }

let package = Package(
  name: "Pictor",
  products: [
    .executable(name: "pictor", targets: ["pictor"]),
    .executable(name: "pictor-imager", targets: ["pictor-imager"]),
  ],
  targets: [
    // lld comes with the toolchain, so no other linker is needed; unlike gold, it does not warn of Foundation's mktemp.
    // A linker setting holds for each product that the target is part of. `-z now`: functions are bound at the start, and
    // their table is read-only from then on.
    .target(
      name: "Core", dependencies: ["CLinux", "CGLib"], path: "Sources",
      exclude: folders(below: "Sources", but: core), sources: core,
      swiftSettings: optimized,
      linkerSettings: [.unsafeFlags(["-use-ld=lld", "-Xlinker", "-z", "-Xlinker", "now"])]),
    .target(
      name: "Requesting", dependencies: ["Core", "CCurl"], swiftSettings: optimized),
    .target(
      name: "Commanding",
      dependencies: ["Core", "Requesting", "CCurl"]),
    .target(
      name: "Serving",
      dependencies: ["Core", "CMicrohttpd", "CGLib", "CReceiving", "CPage"],
      swiftSettings: optimized),
    .target(
      name: "Managing", dependencies: ["Core", "CDeflate"],
      swiftSettings: optimized),
    .target(
      name: "Caching", dependencies: ["Core", "CGLib", "CDeflate", "CLinux"],
      swiftSettings: optimized),
    .target(
      name: "Downloading",
      dependencies: [
        "Core", "Requesting", "CCurl", "CGLib", "CDeflate", "CZlib", "CBrotli", "CZstd",
      ],
      swiftSettings: optimized),
    .target(name: "Tracing", dependencies: ["Core", "Requesting", "CCurl"]),
    .target(
      name: "Sharing",
      dependencies: ["Core", "Requesting", "CCurl", "CHiredis"],
      swiftSettings: optimized),
    .target(name: "ImagingPool", dependencies: ["Core", "CLinux"]),
    .target(
      name: "Sandboxing", dependencies: ["Core", "CSandbox", "CLinux"],
      swiftSettings: isSanitized ? [.define("SANITIZED")] : optimized),
    .target(name: "FastJPEG", dependencies: ["Core"], swiftSettings: always),
    .target(
      name: "ImagingPipeline",
      dependencies: [
        "Core", "FastJPEG", "CVips", "CDeflate", "CJPEG", "CDav1d", "CDe265", "CAom", "CWebP",
        "CJXL", "CVectors",
      ],
      swiftSettings: always),
    .executableTarget(
      name: "pictor",
      dependencies: [
        "Core", "Commanding", "Serving", "Managing", "Caching", "Downloading", "ImagingPool",
        "Tracing", "Sharing", "CSystemd",
      ]),
    .executableTarget(
      name: "pictor-imager",
      dependencies: ["Core", "ImagingPipeline", "Sandboxing", "CLinux", "CZeroing"]),
    .executableTarget(
      name: "benchmark-pipeline",
      dependencies: ["Core", "ImagingPipeline", "CVips"],
      path: "benchmarks/pipeline"),

    .executableTarget(
      name: "benchmark-fill", dependencies: ["Core", "Caching"], path: "benchmarks/fill"),
    .executableTarget(
      name: "benchmark-cache", dependencies: ["Core", "Caching", "CLinux"],
      path: "benchmarks/cache"),
    // What a hit costs in libmicrohttpd alone; started with the same shim as Serving.
    .executableTarget(
      name: "benchmark-floor", dependencies: ["CMicrohttpd"], path: "benchmarks/floor",
      cSettings: [.headerSearchPath("../../Sources/C/CMicrohttpd")]),

    // No library but definitions: the program's recv(2).
    .target(name: "CReceiving", path: "Sources/C/CReceiving"),
    // Nor here: the worker's own malloc.
    .target(name: "CZeroing", path: "Sources/C/CZeroing"),
    // The files of the page at `/`, as bytes.
    .target(
      name: "CPage", path: "Sources/C/CPage", exclude: ["files"],
      cSettings: [.unsafeFlags(["-std=c2x"])]),
    .systemLibrary(name: "CLinux", path: "Sources/C/CLinux"),
    // No library either: vector instructions.
    .systemLibrary(name: "CVectors", path: "Sources/C/CVectors"),
    library("CMicrohttpd", pkgConfig: "libmicrohttpd", package: "libmicrohttpd-dev"),
    library("CCurl", pkgConfig: "libcurl", package: "libcurl4-openssl-dev"),
    library("CVips", pkgConfig: "vips", package: "libvips-dev"),
    // libvips-dev brings its header along.
    library("CJPEG", pkgConfig: "libjpeg", package: "libjpeg-dev"),
    library("CDav1d", pkgConfig: "dav1d", package: "libdav1d-dev"),
    library("CAom", pkgConfig: "aom", package: "libaom-dev"),
    library("CDe265", pkgConfig: "libde265", package: "libde265-dev"),
    library("CWebP", pkgConfig: "libwebp", package: "libwebp-dev"),
    library("CSandbox", pkgConfig: "libseccomp", package: "libseccomp-dev"),
    library("CGLib", pkgConfig: "glib-2.0", package: "libglib2.0-dev"),
    library("CSystemd", pkgConfig: "libsystemd", package: "libsystemd-dev"),
    // Without pkg-config, whose flags for hiredis SwiftPM does not know, and whose flags for libjxl it warns of.
    library("CHiredis", package: "libhiredis-dev"),
    library("CJXL", package: "libjxl-dev"),
    library("CDeflate", pkgConfig: "libdeflate", package: "libdeflate-dev"),
    // What decodes content codings, which libdeflate cannot do piece by piece.
    library("CZlib", pkgConfig: "zlib", package: "zlib1g-dev"),
    library("CBrotli", pkgConfig: "libbrotlidec", package: "libbrotli-dev"),
    library("CZstd", pkgConfig: "libzstd", package: "libzstd-dev"),

    // Encoders that libvips has too, without what it leaves out; its -dev package brings their headers along. And those of
    // content codings.
    .target(
      name: "CCodecs", path: "Tests/CCodecs",
      linkerSettings: ["jpeg", "jxl", "heif", "aom", "openjp2", "z", "brotlienc", "zstd"].map {
        .linkedLibrary($0)
      }),
    .target(
      name: "TestSupport",
      dependencies: ["Core", "ImagingPipeline", "CLinux", "CVips", "CCodecs", "CSandbox", "CGLib"],
      path: "Tests/TestSupport", swiftSettings: optimized),
    .target(name: "CAllocations", path: "Tests/CAllocations"),
    // The reference that colours are held to; it comes with libvips-dev.
    .systemLibrary(
      name: "CLcms", path: "Tests/CLcms", pkgConfig: "lcms2",
      providers: [.apt(["liblcms2-dev"])]),
    .testTarget(
      name: "CoreTests", dependencies: ["Core", "CLinux", "TestSupport"], path: "Tests",
      exclude: folders(below: "Tests", but: coreTests), sources: coreTests),
    .testTarget(
      name: "CommandingTests",
      dependencies: ["Core", "Commanding", "TestSupport"]),
    .testTarget(
      name: "ServingTests",
      dependencies: ["Core", "Serving", "Managing", "Caching", "TestSupport", "CAllocations"]),
    .testTarget(name: "ManagingTests", dependencies: ["Core", "Managing", "TestSupport"]),
    // Writes to a disk tier until a test kills it.
    .executableTarget(
      name: "disk-writer", dependencies: ["Core", "Caching"], path: "Tests/DiskWriter"),
    .testTarget(
      name: "CachingTests",
      dependencies: ["Core", "Caching", "CLinux", "TestSupport", "disk-writer"]),
    .testTarget(
      name: "CacheModelTests", dependencies: ["Core", "Managing", "Caching", "TestSupport"],
      swiftSettings: optimized),
    .testTarget(
      name: "DownloadingTests", dependencies: ["Core", "Downloading", "TestSupport"]),
    .testTarget(
      name: "SharingTests",
      dependencies: ["Core", "Sharing", "Managing", "Caching", "TestSupport"]),
    .testTarget(name: "TracingTests", dependencies: ["Core", "Tracing", "TestSupport"]),
    .testTarget(name: "SandboxingTests", dependencies: ["Sandboxing", "Core", "CSandbox"]),
    // A worker that has been taken over, and what it tries.
    .target(name: "CAttacks", path: "Tests/CAttacks"),
    .executableTarget(
      name: "attacker",
      dependencies: ["Core", "Sandboxing", "CAttacks", "CLinux", "CSandbox"],
      path: "Tests/Attacker"),
    .testTarget(
      name: "ImagingPoolTests",
      dependencies: ["Core", "ImagingPool", "TestSupport", "CAttacks", "pictor-imager", "attacker"]),
    .testTarget(
      name: "FastJPEGTests", dependencies: ["Core", "FastJPEG", "TestSupport"],
      swiftSettings: optimized),
    .testTarget(
      name: "ImagingPipelineTests",
      dependencies: ["Core", "ImagingPipeline", "TestSupport", "CLcms", "CDeflate"],
      swiftSettings: optimized),
    // The parsers of untrusted bytes and texts, of all targets.
    .testTarget(
      name: "FuzzTests",
      dependencies: [
        "Core", "Serving", "Managing", "Caching", "ImagingPipeline", "Sharing", "CLinux",
        "TestSupport", "pictor-imager",
      ],
      swiftSettings: optimized),
    .testTarget(
      name: "IntegrationTests",
      dependencies: ["Core", "TestSupport", "pictor", "pictor-imager", "attacker"]),
  ]
)

// `make test-sanitized`: the thread sanitizer has a build of its own, without targets that have no thread, task or lock.
// Of the pipeline's tests it has those with threads; of the whole program's, those in which many threads meet.
if isSanitized {
  let singleThreaded = ["FastJPEGTests", "FuzzTests"]
  let threaded = [
    "CoreTests": ["PlatformTests", "TelemetryTests", "ImagingWireTests"],
    "ImagingPipelineTests": ["Support", "Pipeline/ThreadsTests.swift"],
    "IntegrationTests": [
      "Support", "Clients", "Fleet", "Life/LifeTests.swift", "Life/ReloadTests.swift",
      "Images/ComingImagesTests.swift", "Images/RecompressionTests.swift",
      "Images/ServingImagesTests.swift", "Operators/PrefetchTests.swift",
      "Operators/PurgeTests.swift", "Origins/BurstTests.swift",
    ],
  ]
  for target in package.targets { target.sources = threaded[target.name] ?? target.sources }
  package.targets.removeAll {
    singleThreaded.contains($0.name) || $0.name.hasPrefix("benchmark-")
  }
}
