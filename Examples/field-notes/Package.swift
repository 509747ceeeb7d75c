// swift-tools-version: 6.2
import PackageDescription

let package = Package(
    name: "field-notes",
    platforms: [.macOS(.v15), .iOS(.v17)],
    dependencies: [
        // Outside this repository: .package(url: "https://github.com/tidemark-swift/tidemark", from: "0.1.0").
        // An app needs no trait, and gets GRDB only.
        .package(name: "tidemark", path: "../.."),
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
    ],
    targets: [
        .executableTarget(
            name: "FieldNotes",
            dependencies: [
                .product(name: "Tidemark", package: "tidemark"),
                .product(name: "GRDB", package: "GRDB.swift"),
            ]
        )
    ]
)
