// swift-tools-version: 6.2
import PackageDescription

// One package, one trait. An app that imports only `Tidemark` resolves GRDB and nothing else; everything that
// needs an HTTP server, a token library or a command line stands behind `Server`.
let server: TargetDependencyCondition? = .when(traits: ["Server"])
let metrics: TargetDependencyCondition? = .when(traits: ["Metrics", "Server"])

// The project's own builds (`make`, CI) stop at a warning; an app that depends on the package never does.
let strict = Context.environment["TIDEMARK_STRICT"] == "1"

let package = Package(
    name: "tidemark",
    platforms: [.macOS(.v15), .iOS(.v17), .tvOS(.v17), .watchOS(.v10), .visionOS(.v1)],
    products: [
        .library(name: "Tidemark", targets: ["Tidemark"]),
        .library(name: "TidemarkObjects", targets: ["TidemarkObjects"]),
        .library(name: "TidemarkMetrics", targets: ["TidemarkMetrics"]),
        .library(name: "TidemarkAsyncHTTPClient", targets: ["TidemarkAsyncHTTPClient"]),
        .library(name: "TidemarkServer", targets: ["TidemarkServer"]),
        .library(name: "TidemarkSQLite", targets: ["TidemarkSQLite"]),
        .library(name: "TidemarkPostgres", targets: ["TidemarkPostgres"]),
        .library(name: "TidemarkHummingbird", targets: ["TidemarkHummingbird"]),
        .library(name: "TidemarkTesting", targets: ["TidemarkTesting"]),
        .executable(name: "tidemark", targets: ["TidemarkCommand"]),
    ],
    traits: [
        .trait(name: "Metrics", description: "A device's numbers through swift-metrics."),
        // It does not enable the other one: SwiftPM names two traits to the compiler in another order where the package
        // is depended on, and so an example would not get the build that the tests have made.
        .trait(name: "Server", description: "The HTTP server, its tokens, the command line, and a device's numbers."),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.26.0"),
        .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.0"),
        .package(url: "https://github.com/swift-server/async-http-client", from: "1.37.0"),
        .package(url: "https://github.com/swift-server/swift-service-lifecycle", from: "2.13.0"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-configuration", from: "1.4.0", traits: []),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.0"),
        .package(url: "https://github.com/apple/swift-metrics", from: "2.7.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
        .package(url: "https://github.com/apple/swift-nio-extras", from: "1.35.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.0"),
    ],
    targets: [
        // The cellar: zlib, which both ends of the wire need and both platforms ship.
        .systemLibrary(name: "CZlib", providers: [.apt(["zlib1g-dev"]), .brew(["zlib"])]),
        .target(name: "TidemarkGzip", dependencies: ["CZlib"]),

        .target(name: "TidemarkWire"),
        .target(name: "TidemarkCore", dependencies: ["TidemarkWire"]),

        // One call of SQLite's that Swift cannot make.
        .target(name: "CConnectionSwitch", dependencies: [.product(name: "GRDBSQLite", package: "GRDB.swift")]),
        // SQLite's session extension, where the library has it.
        .target(name: "CSessions", dependencies: [.product(name: "GRDBSQLite", package: "GRDB.swift")]),
        .target(
            name: "Tidemark",
            dependencies: [
                "TidemarkCore", "TidemarkWire", "TidemarkGzip", "CConnectionSwitch", "CSessions",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ]
        ),
        .target(
            name: "TidemarkObjects",
            dependencies: ["Tidemark", "TidemarkWire", .product(name: "GRDB", package: "GRDB.swift")]
        ),
        .target(
            name: "TidemarkMetrics",
            dependencies: ["Tidemark", .product(name: "CoreMetrics", package: "swift-metrics", condition: metrics)]
        ),
        .target(
            name: "TidemarkAsyncHTTPClient",
            dependencies: [
                "Tidemark", "TidemarkGzip",
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: server),
                .product(name: "NIOCore", package: "swift-nio", condition: server),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: server),
            ]
        ),

        .target(name: "TidemarkServer", dependencies: ["TidemarkCore", "TidemarkWire"]),
        .target(
            name: "TidemarkSQLite",
            dependencies: [
                "TidemarkServer", "TidemarkWire",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "GRDBSQLite", package: "GRDB.swift"),
            ]
        ),
        .systemLibrary(
            name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"]), .brew(["libpq"])]),
        .target(
            name: "TidemarkPostgres",
            dependencies: ["TidemarkServer", "TidemarkWire", "TidemarkCore", "CLibPQ"]),
        .systemLibrary(
            name: "CBrotli", pkgConfig: "libbrotlienc", providers: [.apt(["libbrotli-dev"]), .brew(["brotli"])]),
        .target(name: "TidemarkBrotli", dependencies: ["CBrotli"]),
        .target(
            name: "TidemarkHummingbird",
            dependencies: [
                "TidemarkServer", "TidemarkWire", "TidemarkGzip", .target(name: "TidemarkBrotli", condition: server),
                .product(name: "Hummingbird", package: "hummingbird", condition: server),
                .product(name: "JWTKit", package: "jwt-kit", condition: server),
                .product(name: "HTTPTypes", package: "swift-http-types", condition: server),
                .product(name: "Logging", package: "swift-log", condition: server),
                .product(name: "Metrics", package: "swift-metrics", condition: server),
                .product(name: "NIOConcurrencyHelpers", package: "swift-nio", condition: server),
                .product(name: "NIOCore", package: "swift-nio", condition: server),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: server),
                .product(name: "NIOHTTPTypes", package: "swift-nio-extras", condition: server),
                .product(name: "NIOHTTPTypesHTTP1", package: "swift-nio-extras", condition: server),
                .product(name: "NIOWebSocket", package: "swift-nio", condition: server),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: server),
            ]
        ),
        .target(name: "TidemarkSpawning"),
        .executableTarget(
            name: "TidemarkCommand",
            dependencies: [
                "Tidemark", "TidemarkAsyncHTTPClient", "TidemarkServer", "TidemarkSQLite", "TidemarkHummingbird",
                "TidemarkCore", "TidemarkWire", "TidemarkSpawning",
                .target(name: "TidemarkPostgres", condition: server),
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: server),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "ArgumentParser", package: "swift-argument-parser", condition: server),
                .product(name: "Configuration", package: "swift-configuration", condition: server),
                .product(name: "Hummingbird", package: "hummingbird", condition: server),
                .product(name: "Logging", package: "swift-log", condition: server),
                .product(name: "NIOCore", package: "swift-nio", condition: server),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: server),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: server),
                .product(name: "UnixSignals", package: "swift-service-lifecycle", condition: server),
                .product(name: "Yams", package: "Yams", condition: server),
            ]
        ),
        .target(
            name: "TidemarkTesting",
            dependencies: [
                "Tidemark", "TidemarkServer", "TidemarkSQLite", "TidemarkCore", "TidemarkWire",
                .product(name: "GRDB", package: "GRDB.swift"),
            ]
        ),
        // Apps for the simulator to play: `make simulate`, and the tests. In no product.
        .target(
            name: "SampleApps",
            dependencies: [
                "Tidemark", "TidemarkServer", "TidemarkTesting", .product(name: "GRDB", package: "GRDB.swift"),
            ],
            path: "Simulator/Apps"
        ),
        .executableTarget(
            name: "TidemarkSimulator", dependencies: ["SampleApps", "TidemarkTesting"], path: "Simulator/Command"
        ),

        .executableTarget(
            name: "TidemarkBenchmarks",
            dependencies: [
                "Tidemark", "TidemarkServer", "TidemarkSQLite", "TidemarkTesting",
                .target(name: "TidemarkAsyncHTTPClient", condition: server),
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            path: "Benchmarks", exclude: ["attach-speed", "blob-speed", "file-speed", "fleet-speed", "nudge-speed"]
        ),

        // What has to hold for every decoder; the tests and the fuzzer (`make fuzz`) try to break it.
        .target(
            name: "TidemarkFuzzing", dependencies: ["TidemarkCore", "TidemarkWire", "TidemarkGzip"],
            path: "Fuzz/Properties"),
        .testTarget(name: "WireTests", dependencies: ["TidemarkWire", "TidemarkGzip", "TidemarkFuzzing"]),
        .testTarget(name: "CoreTests", dependencies: ["TidemarkCore", "TidemarkWire", "TidemarkTesting"]),
        .testTarget(
            name: "ClientTests",
            dependencies: [
                "Tidemark", "TidemarkTesting", "TidemarkServer", "TidemarkSQLite", "TidemarkFuzzing",
                "TidemarkSpawning",
            ]
        ),
        // A database server beside a test process; in no product.
        .target(name: "PostgresCluster", dependencies: ["TidemarkSpawning"], path: "Tests/PostgresCluster"),
        .testTarget(
            name: "ServerTests",
            dependencies: [
                "TidemarkServer", "TidemarkSQLite", "TidemarkPostgres", "TidemarkTesting", "TidemarkCore",
                "TidemarkWire", "TidemarkFuzzing", "PostgresCluster",
            ]
        ),
        .testTarget(
            name: "ConvergenceTests",
            dependencies: [
                "Tidemark", "TidemarkTesting", "TidemarkServer", "TidemarkSQLite", "TidemarkWire",
                .product(name: "GRDB", package: "GRDB.swift"),
            ]
        ),
        .testTarget(
            name: "SimulationTests",
            dependencies: [
                "TidemarkSimulator", "SampleApps", "Tidemark", "TidemarkTesting", "TidemarkSpawning",
                .product(name: "GRDB", package: "GRDB.swift"),
            ],
            exclude: ["Corpus"]
        ),
        // Disks that fail on purpose; in no product, so that no app ever compiles it.
        .target(
            name: "CFaultDisk", dependencies: [.product(name: "GRDBSQLite", package: "GRDB.swift")],
            path: "Tests/CFaultDisk"
        ),
        .testTarget(
            name: "DiskFaultTests",
            dependencies: [
                "CFaultDisk", "Tidemark", "TidemarkTesting", "TidemarkServer", "TidemarkSQLite", "TidemarkWire",
                .product(name: "GRDB", package: "GRDB.swift"),
            ]
        ),
        .systemLibrary(
            name: "CBrotliDecoder", path: "Tests/CBrotliDecoder", pkgConfig: "libbrotlidec",
            providers: [.apt(["libbrotli-dev"]), .brew(["brotli"])]),
        .testTarget(
            name: "EndToEndTests",
            dependencies: [
                .target(name: "CBrotliDecoder", condition: server),
                "Tidemark", "TidemarkObjects", "TidemarkAsyncHTTPClient", "TidemarkHummingbird", "TidemarkSQLite",
                "TidemarkServer", "TidemarkCore", "TidemarkWire", "TidemarkGzip", "TidemarkTesting",
                "TidemarkCommand", "TidemarkFuzzing", "TidemarkMetrics", "PostgresCluster", "TidemarkSpawning",
                .target(name: "TidemarkPostgres", condition: server),
                .product(name: "AsyncHTTPClient", package: "async-http-client", condition: server),
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "HTTPTypes", package: "swift-http-types", condition: server),
                .product(name: "Hummingbird", package: "hummingbird", condition: server),
                .product(name: "Logging", package: "swift-log", condition: server),
                .product(name: "MetricsTestKit", package: "swift-metrics", condition: server),
                .product(name: "NIOCore", package: "swift-nio", condition: server),
                .product(name: "NIOEmbedded", package: "swift-nio", condition: server),
                .product(name: "NIOHTTP1", package: "swift-nio", condition: server),
                .product(name: "ServiceLifecycle", package: "swift-service-lifecycle", condition: server),
            ],
            exclude: ["Recordings"]
        ),
        .testTarget(
            name: "DocumentationTests",
            dependencies: [
                "Tidemark", "TidemarkObjects", "TidemarkHummingbird", "TidemarkSQLite", "TidemarkServer",
                "TidemarkTesting",
                .product(name: "GRDB", package: "GRDB.swift"),
                .product(name: "Hummingbird", package: "hummingbird", condition: server),
            ]
        ),
        .testTarget(name: "TidyTests"),
    ]
)

for target in package.targets where target.type != .system {
    var settings = target.swiftSettings ?? []
    settings += [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("MemberImportVisibility"),
        .enableUpcomingFeature("InternalImportsByDefault"),
    ]
    if strict { settings.append(.treatAllWarnings(as: .error)) }
    target.swiftSettings = settings
}
