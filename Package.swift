// swift-tools-version: 6.2
import PackageDescription

/// Warnings are errors where `.ci/run` builds; elsewhere the next compiler's new warnings must not stop a build.
let warnings: [SwiftSetting] = Context.environment["SLUICE_WARNINGS"] == "error" ? [.treatAllWarnings(as: .error)] : []
/// Settings of every target. Swift 6 mode is the tools version's default.
let house: [SwiftSetting] =
    warnings + [.enableUpcomingFeature("ExistentialAny"), .enableUpcomingFeature("MemberImportVisibility")]
/// Settings of the targets that hold unsafe code: each use of it is marked `unsafe`.
let unsafeCode = house + [.strictMemorySafety()]

/// Dependencies of the gateway alone: a package that uses the library leaves the trait out and does not fetch them.
let gateway: TargetDependencyCondition? = .when(traits: ["Gateway"])

/// Programs as an application's developer writes them for Foundation's URLSession, each in one file: built as they
/// would be, and with the toolchain's own URL loading by the scenarios.
func application(
    _ name: String, in folder: String = "Tests/Programs/Compatibility", mode: SwiftLanguageMode = .v6
) -> Target {
    .executableTarget(
        name: name, dependencies: ["URLLoading"], path: "\(folder)/\(name)",
        swiftSettings: warnings + [.swiftLanguageMode(mode)])
}

let package = Package(
    name: "sluice",
    products: [
        .library(name: "WebSocketProtocol", targets: ["WebSocketProtocol"]),
        .library(name: "TLSEngine", targets: ["TLSEngine"]),
        .library(name: "URLLoading", targets: ["URLLoading"]),
        .executable(name: "sluice", targets: ["sluice"]),
    ],
    traits: [
        .trait(name: "Gateway", description: "The gateway and its command line; the library products need none of it."),
        .default(enabledTraits: ["Gateway"]),
    ],
    dependencies: [
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        // Without its traits it brings no Foundation along.
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0", traits: []),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
        // Without its traits it brings no full Foundation along.
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.28.0", traits: []),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
    ],
    targets: [
        .systemLibrary(name: "CLinux"),
        .systemLibrary(name: "CRunLoop"),
        // These libraries themselves are opened at run time, if they are needed.
        .systemLibrary(name: "CGSSAPI"),
        .systemLibrary(name: "CDuktape"),
        .systemLibrary(name: "CCodings"),
        .systemLibrary(name: "CPublicSuffix"),
        .systemLibrary(name: "CSQLite"),
        .systemLibrary(name: "CZlib", pkgConfig: "zlib", providers: [.apt(["zlib1g-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CNGHTTP2", pkgConfig: "libnghttp2", providers: [.apt(["libnghttp2-dev"])]),
        .target(name: "WireText", dependencies: ["ByteKernels", "COpenSSL"], swiftSettings: unsafeCode),
        .target(name: "ByteKernels", swiftSettings: unsafeCode),
        .target(name: "Deflate", dependencies: ["CZlib"], swiftSettings: unsafeCode),
        .target(name: "TLSEngine", dependencies: ["COpenSSL"], swiftSettings: unsafeCode),
        .target(name: "WebTokens", dependencies: ["WireText", "TLSEngine"], swiftSettings: house),
        .target(
            name: "HTTP2Engine",
            dependencies: ["CNGHTTP2", .product(name: "DequeModule", package: "swift-collections")],
            swiftSettings: unsafeCode),
        .target(name: "GSSEngine", dependencies: ["CGSSAPI"], swiftSettings: unsafeCode),
        .target(name: "PACEngine", dependencies: ["CDuktape"], swiftSettings: unsafeCode),
        .target(name: "PublicSuffixList", dependencies: ["CPublicSuffix"], swiftSettings: unsafeCode),
        .target(name: "ContentCodings", dependencies: ["CCodings"], swiftSettings: unsafeCode),
        .target(name: "SQLiteStorage", dependencies: ["CSQLite"], swiftSettings: unsafeCode),
        .target(name: "WebSocketProtocol", dependencies: ["WireText", "ByteKernels", "Deflate"], swiftSettings: house),
        .target(
            name: "HTTPSemantics",
            dependencies: ["WireText", .product(name: "HTTPTypes", package: "swift-http-types")],
            swiftSettings: house),
        .target(
            name: "StreamTransport",
            dependencies: [
                "CLinux", "ByteKernels",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ], swiftSettings: unsafeCode),
        .target(
            name: "SessionTasks",
            dependencies: [
                "WireText", "StreamTransport", "WebSocketProtocol", "TLSEngine", "ByteKernels",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: house),
        .target(
            name: "HTTPTransport",
            dependencies: [
                "WireText", "SessionTasks", "StreamTransport", "TLSEngine", "HTTP2Engine", "ByteKernels",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: house),
        .target(name: "BackgroundTransfers", dependencies: ["ByteKernels", "StreamTransport"], swiftSettings: house),
        .target(
            name: "TransferDaemon",
            dependencies: [
                "BackgroundTransfers", "ByteKernels", "HTTPSemantics", "SQLiteStorage", "StreamTransport",
                "URLLoading",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: house),
        .target(
            name: "URLLoading",
            dependencies: [
                "BackgroundTransfers", "CRunLoop", "WireText",
                "HTTPTransport", "SessionTasks", "StreamTransport", "HTTPSemantics", "TLSEngine", "GSSEngine",
                "PACEngine", "Deflate", "ContentCodings", "PublicSuffixList",
                "ByteKernels", "WebSocketProtocol",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: house),
        .target(
            name: "Rooms",
            dependencies: [
                "WireText", "ByteKernels", .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: house),
        .target(
            name: "RedisEngine",
            dependencies: [
                "WireText", "ByteKernels", .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: house),
        .target(
            name: "Cluster",
            dependencies: [
                "RedisEngine", "SessionTasks", "StreamTransport", "TLSEngine", "WireText", "ByteKernels",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: house),
        .target(
            name: "GatewayConfiguration",
            dependencies: [
                "RedisEngine", "Rooms", "WireText", "WebSocketProtocol", "WebTokens",
                .product(name: "Yams", package: "Yams", condition: gateway),
            ],
            swiftSettings: house),
        .target(
            name: "GatewayCore",
            dependencies: [
                "WireText",
                "Cluster", "Deflate", "GatewayConfiguration", "HTTPSemantics", "RedisEngine", "Rooms", "SessionTasks",
                "StreamTransport",
                "WebSocketProtocol", "TLSEngine", "WebTokens", "ByteKernels",
                .product(name: "DequeModule", package: "swift-collections"),
            ],
            swiftSettings: house),
        .target(name: "CommandLineText", dependencies: ["WireText"], swiftSettings: house),
        .target(name: "ControlAPI", swiftSettings: house),
        .target(
            name: "ControlClient", dependencies: ["CommandLineText", "ControlAPI", "URLLoading", "WireText"],
            swiftSettings: house),
        .target(
            name: "ControlPlane",
            dependencies: [
                "WireText",
                "CLinux", "Cluster", "ControlAPI", "GatewayConfiguration", "GatewayCore", "HTTPSemantics",
                "HTTPTransport", "Rooms", "SessionTasks",
                "StreamTransport", "TLSEngine", "URLLoading", "WebSocketProtocol", "ByteKernels",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "HummingbirdCore", package: "hummingbird", condition: gateway),
                .product(name: "Logging", package: "swift-log", condition: gateway),
                .product(name: "CoreMetrics", package: "swift-metrics", condition: gateway),
                .product(name: "NIOCore", package: "swift-nio", condition: gateway),
                .product(name: "NIOExtras", package: "swift-nio-extras", condition: gateway),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: gateway),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras", condition: gateway),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras", condition: gateway),
                .product(name: "NIOPosix", package: "swift-nio", condition: gateway),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: gateway),
            ],
            swiftSettings: house),
        .target(
            name: "Commands",
            dependencies: [
                "WireText",
                "BackgroundTransfers", "CommandLineText", "ControlAPI", "ControlClient", "ControlPlane",
                "GatewayConfiguration", "GatewayCore", "HTTPSemantics", "SessionTasks", "StreamTransport", "TLSEngine",
                "TransferDaemon", "URLLoading",
                "WebSocketProtocol", "WebTokens",
                .product(name: "ArgumentParser", package: "swift-argument-parser", condition: gateway),
            ],
            swiftSettings: house),
        .executableTarget(name: "sluice", dependencies: ["Commands"], swiftSettings: house),
        .executableTarget(
            name: "TaskClient",
            dependencies: [
                "SessionTasks", "StreamTransport", "WebSocketProtocol", "TLSEngine",
                .product(name: "ArgumentParser", package: "swift-argument-parser", condition: gateway),
            ],
            path: "Tests/Programs/TaskClient", swiftSettings: house),
        .executableTarget(
            name: "Loader",
            dependencies: [
                "URLLoading", .product(name: "ArgumentParser", package: "swift-argument-parser", condition: gateway),
            ],
            path: "Tests/Programs/Loader", swiftSettings: house),
        .executableTarget(
            name: "BackgroundLoader", dependencies: ["URLLoading"], path: "Tests/Programs/BackgroundLoader",
            swiftSettings: house),
        application("AsyncDelegate"),
        application("AsyncStyle"),
        application("CompletionStyle", mode: .v5),
        application("CookiesAndCache"),
        application("DelegateStyle", mode: .v5),
        application("DownloadResume"),
        application("LineStyle"),
        application("MailClient"),
        application("Recipe"),
        application("SignIn"),
        application("Subclasses"),
        application("TransferBenchmark", in: "Tests/Benchmarks"),
        application("UploadProgress"),
        application("WebSocketChat"),
        .executableTarget(
            name: "SessionBenchmark",
            dependencies: [
                "URLLoading", "SessionTasks", "StreamTransport", "WebSocketProtocol",
                .product(name: "ArgumentParser", package: "swift-argument-parser", condition: gateway),
            ],
            path: "Tests/Benchmarks/SessionBenchmark", swiftSettings: house),
        .executableTarget(
            name: "ConstantBenchmark",
            dependencies: [
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird", condition: gateway),
                .product(name: "HummingbirdCore", package: "hummingbird", condition: gateway),
                .product(name: "Logging", package: "swift-log", condition: gateway),
                .product(name: "NIOCore", package: "swift-nio", condition: gateway),
            ],
            path: "Tests/Benchmarks/ConstantBenchmark", swiftSettings: house),
        .executableTarget(
            name: "Articles", dependencies: ["URLLoading"], path: "Tests/Programs/Articles", swiftSettings: house),
        .target(
            name: "SimulatedNetwork",
            dependencies: [
                "StreamTransport", "ByteKernels",
                .product(name: "DequeModule", package: "swift-collections"),
                .product(name: "HeapModule", package: "swift-collections"),
            ], swiftSettings: house),
        .target(
            name: "TestSupport",
            dependencies: ["ByteKernels", "COpenSSL", "SimulatedNetwork", "StreamTransport"],
            swiftSettings: house),
        .target(
            name: "GatewayTestSupport",
            dependencies: [
                "Cluster", "ControlAPI", "ControlPlane", "GatewayConfiguration", "GatewayCore", "StreamTransport",
                "URLLoading",
            ],
            swiftSettings: house),
        .testTarget(name: "WireTextTests", dependencies: ["WireText", "TestSupport"], swiftSettings: house),
        .testTarget(name: "ByteKernelsTests", dependencies: ["ByteKernels", "TestSupport"], swiftSettings: house),
        .testTarget(name: "DeflateTests", dependencies: ["Deflate", "TestSupport"], swiftSettings: house),
        .testTarget(name: "TLSEngineTests", dependencies: ["TLSEngine", "TestSupport"], swiftSettings: house),
        .testTarget(
            name: "WebTokensTests", dependencies: ["WebTokens", "TLSEngine", "TestSupport", "WireText"],
            swiftSettings: house),
        .testTarget(name: "HTTP2EngineTests", dependencies: ["HTTP2Engine", "TestSupport"], swiftSettings: house),
        .testTarget(
            name: "WebSocketProtocolTests", dependencies: ["WebSocketProtocol", "ByteKernels", "TestSupport"],
            exclude: ["Corpus"], swiftSettings: house),
        .testTarget(
            name: "HTTPSemanticsTests",
            dependencies: [
                "HTTPSemantics", "TestSupport",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: house),
        .testTarget(
            name: "StreamTransportTests",
            dependencies: ["StreamTransport", "SimulatedNetwork", "ByteKernels", "TestSupport"],
            swiftSettings: house),
        .testTarget(
            name: "SessionTasksTests",
            dependencies: [
                "SessionTasks", "StreamTransport", "SimulatedNetwork", "WebSocketProtocol", "TLSEngine", "ByteKernels",
                "TestSupport",
            ],
            swiftSettings: house),
        .testTarget(
            name: "HTTPTransportTests",
            dependencies: [
                "HTTPTransport", "HTTP2Engine", "SessionTasks", "SimulatedNetwork", "StreamTransport", "TLSEngine",
                "WireText", "ByteKernels", "TestSupport",
            ],
            swiftSettings: house),
        .testTarget(name: "PACEngineTests", dependencies: ["PACEngine"], swiftSettings: house),
        .testTarget(name: "GSSEngineTests", dependencies: ["GSSEngine", "TestSupport"], swiftSettings: house),
        .testTarget(
            name: "TransferDaemonTests",
            dependencies: [
                "BackgroundTransfers", "ByteKernels", "SQLiteStorage", "TestSupport", "TransferDaemon",
            ],
            swiftSettings: house),
        .testTarget(
            name: "URLLoadingTests",
            dependencies: [
                "BackgroundTransfers", "TransferDaemon",
                "URLLoading", "HTTPTransport", "HTTP2Engine", "GSSEngine", "SessionTasks", "StreamTransport",
                "HTTPSemantics",
                "TLSEngine", "Deflate", "ByteKernels", "SimulatedNetwork", "TestSupport", "WebSocketProtocol",
                "WireText",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            swiftSettings: house),
        .testTarget(
            name: "RoomsTests", dependencies: ["Rooms", "ByteKernels", "WireText", "TestSupport"], swiftSettings: house),
        .testTarget(
            name: "RedisEngineTests", dependencies: ["RedisEngine", "ByteKernels", "TestSupport"], swiftSettings: house),
        .testTarget(
            name: "ClusterTests",
            dependencies: [
                "Cluster", "RedisEngine", "SessionTasks", "StreamTransport", "TLSEngine", "ByteKernels", "WireText",
                "SimulatedNetwork", "TestSupport",
            ],
            swiftSettings: house),
        .testTarget(
            name: "GatewayConfigurationTests",
            dependencies: [
                "GatewayConfiguration", "GatewayCore", "GatewayTestSupport", "StreamTransport", "TestSupport",
            ],
            swiftSettings: house),
        .testTarget(
            name: "GatewayCoreTests",
            dependencies: [
                "Cluster", "GatewayConfiguration", "GatewayCore", "GatewayTestSupport", "HTTPSemantics", "RedisEngine",
                "Rooms", "SessionTasks",
                "StreamTransport", "SimulatedNetwork", "WebSocketProtocol", "WebTokens", "TLSEngine", "ByteKernels",
                "TestSupport",
                "WireText",
            ],
            swiftSettings: house),
        .testTarget(
            name: "ControlPlaneTests",
            dependencies: [
                "Cluster", "ControlPlane", "ControlAPI", "GatewayConfiguration", "GatewayCore", "GatewayTestSupport",
                "StreamTransport", "SessionTasks", "TestSupport", "TLSEngine",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "HummingbirdCore", package: "hummingbird", condition: gateway),
                .product(name: "NIOCore", package: "swift-nio", condition: gateway),
                .product(name: "NIOEmbedded", package: "swift-nio", condition: gateway),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: gateway),
            ],
            swiftSettings: house),
        .testTarget(
            name: "UploadInteropTests",
            dependencies: [
                "URLLoading",
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "NIOCore", package: "swift-nio", condition: gateway),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: gateway),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras", condition: gateway),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras", condition: gateway),
                .product(name: "NIOPosix", package: "swift-nio", condition: gateway),
                .product(name: "NIOResumableUpload", package: "swift-nio-extras", condition: gateway),
            ],
            swiftSettings: house),
        .testTarget(
            name: "CommandsTests",
            dependencies: [
                "Commands", "ControlAPI", "ControlPlane", "GatewayConfiguration", "GatewayCore", "GatewayTestSupport",
                "TestSupport",
            ],
            swiftSettings: house),
        .testTarget(name: "CommandLineTextTests", dependencies: ["CommandLineText"], swiftSettings: house),
        .testTarget(
            name: "ControlClientTests", dependencies: ["ControlClient", "ControlAPI", "CommandLineText"],
            swiftSettings: house),
        .target(
            name: "FuzzTargets",
            dependencies: [
                "GatewayConfiguration", "GatewayCore", "StreamTransport", "WebSocketProtocol", "TLSEngine", "Deflate",
                "ByteKernels", "HTTPSemantics", "HTTPTransport", "RedisEngine", "Rooms", "SimulatedNetwork",
                "URLLoading", "WebTokens", "WireText",
                .product(name: "HTTPTypes", package: "swift-http-types"),
            ],
            path: "Tests/Fuzz/Targets", swiftSettings: house),
        .executableTarget(
            name: "Fuzzer", dependencies: ["FuzzTargets"], path: "Tests/Fuzz/Fuzzer", swiftSettings: house),
        .testTarget(name: "FuzzTests", dependencies: ["FuzzTargets"], path: "Tests/Fuzz/Tests", swiftSettings: house),
        .testTarget(name: "ConformanceTests", dependencies: [], path: "Tests/Conformance", swiftSettings: house),
    ]
)

// `deploy/test` builds in parts: the engines' tests run under the sanitizers alone, and the thread sanitizer only where
// there are threads. `SLUICE_PART=library` builds URL loading and its tests without the gateway: the short loop of
// someone who works on them.
let part = Context.environment["SLUICE_PART"]
let threadedEngines = ["TLSEngine", "StreamTransport", "SessionTasks"]
let engines =
    ["WireText", "ByteKernels", "Deflate", "WebSocketProtocol", "WebTokens", "HTTP2Engine"] + threadedEngines
if part == "gateway" {
    package.targets.removeAll { target in engines.contains { target.name == $0 + "Tests" } }
} else if part == "engines" || part == "threaded-engines" || part == "library" {
    let loading = [
        "HTTPSemantics", "HTTPTransport", "URLLoading", "GSSEngine", "PACEngine", "PublicSuffixList", "ContentCodings",
        "BackgroundTransfers", "SQLiteStorage", "TransferDaemon",
    ]
    let tested = part == "threaded-engines" ? threadedEngines : part == "engines" ? engines : engines + loading
    let support = [
        "CLinux", "CZlib", "COpenSSL", "CNGHTTP2", "CRunLoop", "CGSSAPI", "CDuktape", "CCodings", "CPublicSuffix",
        "CSQLite", "SimulatedNetwork", "TestSupport",
    ]
    let kept = Set(tested + (part == "library" ? [] : engines) + support + tested.map { $0 + "Tests" })
    let packages = part == "library" ? ["/swift-collections", "/swift-http-types"] : ["/swift-collections"]
    package.products = []
    package.targets.removeAll { !kept.contains($0.name) }
    package.dependencies.removeAll { dependency in
        guard case .sourceControl(_, let location, _) = dependency.kind else { return true }
        return !packages.contains { location.hasSuffix($0) }
    }
}
