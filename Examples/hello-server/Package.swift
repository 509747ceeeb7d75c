// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "hello-server",
    platforms: [.macOS(.v15)],
    dependencies: [
        // Outside this repository:
        // .package(url: "https://github.com/tidemark-swift/tidemark", from: "0.1.0", traits: ["Server"])
        .package(name: "tidemark", path: "../..", traits: ["Server"]),
        .package(url: "https://github.com/hummingbird-project/hummingbird", from: "2.26.0"),
        .package(url: "https://github.com/vapor/jwt-kit", from: "5.7.0"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.0.0"),
        .package(url: "https://github.com/apple/swift-http-types", from: "1.8.0"),
    ],
    targets: [
        .executableTarget(
            name: "HelloServer",
            dependencies: [
                .product(name: "TidemarkServer", package: "tidemark"),
                .product(name: "TidemarkSQLite", package: "tidemark"),
                .product(name: "TidemarkHummingbird", package: "tidemark"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "JWTKit", package: "jwt-kit"),
            ]
        ),
        // A receiver of webhooks that sends background pushes; it needs nothing of Tidemark's.
        .target(
            name: "Push",
            dependencies: [
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "JWTKit", package: "jwt-kit"),
            ]),
        .executableTarget(
            name: "PushRelay",
            dependencies: ["Push", .product(name: "Hummingbird", package: "hummingbird")]),
        // Plays both ends: signs a webhook, and is Apple's door.
        .executableTarget(
            name: "PushCheck",
            dependencies: [
                "Push",
                .product(name: "Crypto", package: "swift-crypto"),
                .product(name: "HTTPTypes", package: "swift-http-types"),
                .product(name: "Hummingbird", package: "hummingbird"),
                .product(name: "JWTKit", package: "jwt-kit"),
            ]),
    ]
)
