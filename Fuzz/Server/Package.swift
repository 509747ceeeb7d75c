// swift-tools-version: 6.2
import PackageDescription

// A package of its own, since all of it, the HTTP server and the token library too, is built for the fuzzer:
// `make fuzz`, or `Scripts/fuzz 60 jwt claims query`.
let package = Package(
    name: "tidemark-fuzz-server",
    platforms: [.macOS(.v15)],
    dependencies: [
        .package(name: "tidemark", path: "../..", traits: ["Server"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.26.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/apple/swift-nio", from: "2.101.0"),
    ],
    targets: [
        .executableTarget(
            name: "FuzzServer",
            dependencies: [
                .product(name: "TidemarkHummingbird", package: "tidemark"),
                .product(name: "TidemarkSQLite", package: "tidemark"),
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "NIOEmbedded", package: "swift-nio"),
            ],
            path: "Sources", swiftSettings: [.unsafeFlags(["-parse-as-library"])])
    ]
)
