// swift-tools-version: 6.2
// The targets are in the order of docs/architecture.md's table: who may import whom is read off here.

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
    // A linker setting holds for each product that the target is part of. `-z now`: functions are bound at the start, and
    // their table is read-only from then on.
    .target(
      name: "Platform", dependencies: ["CLinux"], swiftSettings: optimized,
      linkerSettings: [.unsafeFlags(["-use-ld=lld", "-Xlinker", "-z", "-Xlinker", "now"])]),
    .target(
      name: "Model", dependencies: ["Platform"],
      swiftSettings: optimized),
    .target(
      name: "Telemetry", dependencies: ["Model", "Platform"],
      swiftSettings: optimized),
    .target(
      name: "Requesting", dependencies: ["Model", "Platform", "CCurl"], swiftSettings: optimized),
    .target(name: "Signing", dependencies: ["Model", "CGLib"], swiftSettings: optimized),
    .target(name: "Configuring", dependencies: ["Model", "Platform"]),
    .target(
      name: "Commanding",
      dependencies: ["Model", "Platform", "Signing", "Requesting", "CCurl", "Configuring"]),
    .target(
      name: "Serving",
      dependencies: words + ["Signing", "CMicrohttpd", "CGLib", "CReceiving", "CPage"],
      swiftSettings: optimized),
    .target(
      name: "Managing", dependencies: words + ["CDeflate"],
      swiftSettings: optimized),
    .target(
      name: "Caching", dependencies: words + ["CGLib", "CDeflate", "CLinux"],
      swiftSettings: optimized),
    .target(
      name: "Downloading",
      dependencies: words + [
        "Signing", "Requesting", "CCurl", "CGLib", "CDeflate", "CZlib", "CBrotli", "CZstd",
      ],
      swiftSettings: optimized),
    .target(name: "Tracing", dependencies: words + ["Requesting", "CCurl"]),
    .target(
      name: "Sharing",
      dependencies: words + ["Signing", "Requesting", "CCurl", "CGLib", "CHiredis"],
      swiftSettings: optimized),
    .target(
      name: "ImagingWire", dependencies: ["Model", "Platform", "CLinux"],
      swiftSettings: optimized),
    .target(name: "ImagingPool", dependencies: words + ["ImagingWire", "CLinux"]),
    .target(
      name: "Sandboxing", dependencies: ["Model", "Platform", "CSandbox", "CLinux"],
      swiftSettings: isSanitized ? [.define("SANITIZED")] : optimized),
    .target(name: "FastJPEG", dependencies: ["Model"], swiftSettings: always),
    .target(
      name: "ImagingPipeline",
      dependencies: [
        "Model", "Platform", "ImagingWire", "FastJPEG", "CVips", "CDeflate", "CJPEG", "CDav1d",
        "CDe265", "CAom", "CWebP", "CJXL", "CVectors",
      ],
      swiftSettings: always),
    .executableTarget(
      name: "pictor",
      dependencies: words + [
        "Signing", "Configuring", "Commanding", "Serving", "Managing", "Caching", "Downloading",
        "ImagingPool", "Tracing", "Sharing",
        "ImagingWire", "CSystemd",
      ]),
    .executableTarget(
      name: "pictor-imager",
      dependencies: [
        "Model", "Platform", "ImagingPipeline", "ImagingWire", "Sandboxing", "CLinux", "CZeroing",
      ]),
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
      dependencies: [
        "Model", "Platform", "Telemetry", "ImagingPipeline", "ImagingWire", "CLinux", "CVips",
        "CCodecs", "CSandbox", "CGLib",
      ],
      path: "Tests/TestSupport", swiftSettings: optimized),
    .target(name: "CAllocations", path: "Tests/CAllocations"),
    // The reference that colours are held to; it comes with libvips-dev.
    .systemLibrary(
      name: "CLcms", path: "Tests/CLcms", pkgConfig: "lcms2",
      providers: [.apt(["liblcms2-dev"])]),
    .testTarget(name: "PlatformTests", dependencies: ["Platform", "TestSupport"]),
    .testTarget(name: "ModelTests", dependencies: ["Model", "TestSupport"]),
    .testTarget(name: "TelemetryTests", dependencies: words + ["TestSupport"]),
    .testTarget(name: "SigningTests", dependencies: ["Signing", "Model", "TestSupport"]),
    .testTarget(name: "ConfiguringTests", dependencies: ["Configuring", "Model", "TestSupport"]),
    .testTarget(
      name: "CommandingTests",
      dependencies: ["Model", "Platform", "Signing", "Configuring", "Commanding", "TestSupport"]),
    .testTarget(
      name: "ServingTests",
      dependencies: words + [
        "Signing", "Serving", "Managing", "Caching", "TestSupport", "CAllocations",
      ]),
    .testTarget(name: "ManagingTests", dependencies: words + ["Managing", "TestSupport"]),
    // Writes to a disk tier until a test kills it.
    .executableTarget(
      name: "disk-writer", dependencies: words + ["Caching"], path: "Tests/DiskWriter"),
    .testTarget(
      name: "CachingTests",
      dependencies: words + ["Caching", "CLinux", "TestSupport", "disk-writer"]),
    .testTarget(
      name: "CacheModelTests", dependencies: words + ["Managing", "Caching", "TestSupport"],
      swiftSettings: optimized),
    .testTarget(
      name: "DownloadingTests", dependencies: words + ["Downloading", "Signing", "TestSupport"]),
    .testTarget(
      name: "SharingTests",
      dependencies: words + ["Sharing", "Managing", "Caching", "TestSupport"]),
    .testTarget(name: "TracingTests", dependencies: words + ["Tracing", "TestSupport"]),
    .testTarget(
      name: "ImagingWireTests",
      dependencies: ["Model", "Platform", "ImagingWire", "CLinux", "TestSupport"]),
    .testTarget(name: "SandboxingTests", dependencies: ["Sandboxing", "Model", "CSandbox"]),
    // A worker that has been taken over, and what it tries.
    .target(name: "CAttacks", path: "Tests/CAttacks"),
    .executableTarget(
      name: "attacker",
      dependencies: [
        "Model", "Platform", "ImagingWire", "Sandboxing", "CAttacks", "CLinux", "CSandbox",
      ],
      path: "Tests/Attacker"),
    .testTarget(
      name: "ImagingPoolTests",
      dependencies: words + [
        "ImagingPool", "ImagingWire", "TestSupport", "CAttacks", "pictor-imager", "attacker",
      ]),
    .testTarget(
      name: "FastJPEGTests", dependencies: ["Model", "FastJPEG", "TestSupport"],
      swiftSettings: optimized),
    .testTarget(
      name: "ImagingPipelineTests",
      dependencies: [
        "Model", "Platform", "ImagingPipeline", "ImagingWire", "TestSupport", "CLcms", "CDeflate",
      ],
      swiftSettings: optimized),
    // The parsers of untrusted bytes and texts, of all targets.
    .testTarget(
      name: "FuzzTests",
      dependencies: [
        "Model", "Platform", "Serving", "Managing", "Caching", "Configuring", "ImagingWire",
        "ImagingPipeline", "Sharing", "CLinux", "TestSupport", "pictor-imager",
      ],
      swiftSettings: optimized),
    .testTarget(
      name: "IntegrationTests",
      dependencies: words + [
        "Signing", "Configuring", "TestSupport", "pictor", "pictor-imager", "attacker",
      ]),
  ]
)

// `make test-sanitized`: the thread sanitizer has a build of its own, without targets that have no thread, task or lock.
// Of the pipeline's tests it has those with threads; of the whole program's, those in which many threads meet.
if isSanitized {
  let singleThreaded = [
    "ModelTests", "SigningTests", "ConfiguringTests", "FastJPEGTests", "FuzzTests",
  ]
  let threaded = [
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
