// swift-tools-version: 6.2
// The targets are in the order of docs/architecture.md's table: who may import whom is read off here.

import Foundation
import PackageDescription

/// A C library of Debian's: a module map and a `shim.h` of one-call inline functions. Without pkg-config: nearly all
/// headers are where compilers look, and SwiftPM warns of flags that it does not know.
func library(_ name: String, package: String) -> Target {
  .systemLibrary(name: name, path: "Sources/C/" + name, providers: [.apt([package])])
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

#if arch(x86_64)
  let vectorFlags = ["-msse4.1"]
#else
  let vectorFlags: [String] = []
#endif

/// What a folder has.
func folders(at path: String) -> [String] {
  ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
}

/// Folders below `place` that another target has. SwiftPM warns of each that a target of several folders does not exclude.
func folders(below place: String, but own: [String]) -> [String] {
  folders(at: Context.packageDirectory + "/" + place).filter { !own.contains($0) }
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
      dependencies: ["Core", "Requesting", "Doors", "CCurl"]),
    .target(
      name: "Serving",
      dependencies: ["Core", "CMicrohttpd", "CReceiving", "CPage", "CDeflate"],
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
    .target(name: "Doors", dependencies: ["Core"]),
    .target(name: "ImagingPool", dependencies: ["Core", "CLinux"]),
    .target(
      name: "Sandboxing", dependencies: ["Core", "CSandbox", "CLinux"],
      swiftSettings: isSanitized ? [.define("SANITIZED")] : optimized),
    .target(name: "FastJPEG", dependencies: ["Core"], swiftSettings: always),
    .target(
      name: "ImagingPipeline",
      dependencies: [
        "Core", "FastJPEG", "CVips", "CDeflate", "CJPEG", "CDav1d", "CDe265", "CAom", "CWebP",
        "CJXL", "CVectors", "CFaces",
      ],
      swiftSettings: always,
      // libvips's module finds it in the program (`StrictHEIF`).
      linkerSettings: [
        .unsafeFlags(["-Xlinker", "--export-dynamic-symbol=heif_decoding_options_alloc"])
      ]),
    .executableTarget(
      name: "pictor",
      dependencies: [
        "Core", "Commanding", "Serving", "Managing", "Caching", "Downloading", "ImagingPool",
        "Tracing", "Sharing", "Doors", "CSystemd",
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
      cSettings: [.headerSearchPath("../../Sources/C/CMicrohttpd")],
      linkerSettings: [.linkedLibrary("microhttpd")]),

    // No library but definitions: the program's recv(2).
    .target(name: "CReceiving", path: "Sources/C/CReceiving"),
    // Nor here: the worker's own malloc.
    .target(name: "CZeroing", path: "Sources/C/CZeroing"),
    // The files of the page at `/`, as bytes.
    .target(
      name: "CPage", path: "Sources/C/CPage", exclude: ["files"],
      cSettings: [.unsafeFlags(["-std=c2x"])]),
    // dlib's face detector: headers of libdlib-dev, and no library. dlib tells from the flags which vector instructions
    // it may use; with those of SSE2 alone it takes twice as long.
    .target(
      name: "CFaces", path: "Sources/C/CFaces", exclude: ["model"],
      cxxSettings: [.unsafeFlags(["-std=c++17", "-O2", "-Wno-c23-extensions"] + vectorFlags)]),
    .systemLibrary(name: "CLinux", path: "Sources/C/CLinux"),
    // No library either: vector instructions.
    .systemLibrary(name: "CVectors", path: "Sources/C/CVectors"),
    library("CMicrohttpd", package: "libmicrohttpd-dev"),
    library("CCurl", package: "libcurl4-openssl-dev"),
    library("CVips", package: "libvips-dev"),
    // libvips-dev brings its header along.
    library("CJPEG", package: "libjpeg-dev"),
    library("CDav1d", package: "libdav1d-dev"),
    library("CAom", package: "libaom-dev"),
    library("CDe265", package: "libde265-dev"),
    library("CWebP", package: "libwebp-dev"),
    library("CSandbox", package: "libseccomp-dev"),
    library("CGLib", package: "libglib2.0-dev"),
    library("CSystemd", package: "libsystemd-dev"),
    library("CHiredis", package: "libhiredis-dev"),
    library("CJXL", package: "libjxl-dev"),
    library("CDeflate", package: "libdeflate-dev"),
    // What decodes content codings, which libdeflate cannot do piece by piece.
    library("CZlib", package: "zlib1g-dev"),
    library("CBrotli", package: "libbrotli-dev"),
    library("CZstd", package: "libzstd-dev"),

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
      name: "CLcms", path: "Tests/CLcms",
      providers: [.apt(["liblcms2-dev"])]),
    .testTarget(
      name: "CoreTests", dependencies: ["Core", "CLinux", "TestSupport"], path: "Tests",
      exclude: folders(below: "Tests", but: coreTests), sources: coreTests),
    .testTarget(
      name: "CommandingTests",
      dependencies: ["Core", "Commanding", "TestSupport"]),
    .testTarget(
      name: "ServingTests",
      dependencies: [
        "Core", "Serving", "Managing", "Caching", "TestSupport", "CAllocations", "CDeflate",
      ]),
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
    .testTarget(name: "DoorsTests", dependencies: ["Core", "Doors", "TestSupport"]),
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
        "Core", "Serving", "Managing", "Caching", "ImagingPipeline", "Sharing", "Doors", "CLinux",
        "CVips", "TestSupport", "pictor-imager",
      ],
      swiftSettings: optimized),
    .testTarget(
      name: "IntegrationTests",
      dependencies: ["Core", "TestSupport", "pictor", "pictor-imager", "attacker"]),
  ]
)

// GLib's headers are in folders of their own; one of them is the machine's.
let libraries = ["/usr/lib64"] + folders(at: "/usr/lib").map { "/usr/lib/" + $0 }
let glib = ["/usr/include/glib-2.0"] + libraries.map { $0 + "/glib-2.0/include" }
let headers = glib.filter { !folders(at: $0).isEmpty }.flatMap { ["-Xcc", "-I" + $0] }
for target in package.targets where target.type != .system {
  target.swiftSettings = (target.swiftSettings ?? []) + [.unsafeFlags(headers)]
}

// `make test-sanitized`: the thread sanitizer has a build of its own, without targets that have no thread, task or lock.
// It has the tests in which threads, tasks or event loops meet.
if isSanitized {
  let singleThreaded = ["CommandingTests", "DoorsTests", "FastJPEGTests", "FuzzTests"]
  let threaded = [
    "CoreTests": ["PlatformTests", "TelemetryTests", "ImagingWireTests"],
    "ServingTests": [
      "Fixtures.swift", "Clients", "Listening", "Logging/LogFile.swift", "Request", "Server",
      "Streaming",
    ],
    "CachingTests": ["Samples.swift", "Disk", "Memory", "Purging"],
    "DownloadingTests": [
      "Support.swift", "DownloaderTests.swift", "Body", "Coding", "Names", "Queue", "Transfer",
    ],
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
