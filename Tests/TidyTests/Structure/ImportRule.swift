/// Imports point down: each target may import the floors below it and the outside modules it stands on, no others. The
/// client gives its apps no whole module, only declarations by name.
enum ImportRule {
    static func faults(path: String, text: String) -> [Fault] {
        let parts = path.split(separator: "/")
        guard parts.count > 2, parts[0] == "Sources" else { return [] }
        let target = String(parts[1])
        guard let allowed = allowed[target] else {
            return [Fault(path: path, line: 1, message: "no imports are listed for \(target); add it to ImportRule")]
        }
        return SwiftText(text).code.enumerated().compactMap { index, line in
            guard let module = importedModule(line) else { return nil }
            if !allowed.contains(module) {
                return Fault(path: path, line: index + 1, message: "\(target) must not import \(module)")
            }
            guard target == "Tidemark", line.contains("@_exported"), !line.contains("\(module).") else { return nil }
            return Fault(path: path, line: index + 1, message: "apps would see all of \(module); name what they need")
        }
    }

    private static let allowed: [String: Set<String>] = {
        let foundation: Set = ["Foundation", "FoundationEssentials"]
        let sqlite: Set = ["GRDB", "GRDBSQLite", "SQLite3"]
        var table: [String: Set<String>] = [
            "TidemarkWire": foundation,
            "TidemarkCore": ["TidemarkWire"],
            "TidemarkGzip": ["CZlib"],
            "TidemarkBrotli": ["CBrotli"],
            "TidemarkSpawning": ["Foundation"],
            "CConnectionSwitch": [],
            "CSessions": [],
            "Tidemark": sqlite.union([
                "TidemarkCore", "TidemarkWire", "TidemarkGzip", "CConnectionSwitch", "CSessions", "Foundation",
                "FoundationNetworking", "Observation",
            ]),
            "TidemarkMetrics": ["Tidemark", "CoreMetrics"],
            "TidemarkObjects": ["Tidemark", "TidemarkWire", "GRDB", "Foundation"],
            "TidemarkAsyncHTTPClient": [
                "Tidemark", "TidemarkGzip", "TidemarkWire", "AsyncHTTPClient", "NIOCore", "NIOHTTP1",
                "NIOFoundationCompat", "Foundation",
            ],
            "TidemarkServer": foundation.union(["TidemarkCore", "TidemarkWire"]),
            "TidemarkSQLite": sqlite.union(["TidemarkServer", "TidemarkWire", "TidemarkCore", "Foundation"]),
            "TidemarkPostgres": ["CLibPQ", "TidemarkServer", "TidemarkWire", "TidemarkCore", "Foundation"],
            "TidemarkHummingbird": [
                "TidemarkServer", "TidemarkWire", "TidemarkCore", "TidemarkGzip", "TidemarkBrotli", "Hummingbird",
                "HummingbirdCore", "HTTPTypes", "JWTKit", "Logging", "Metrics", "NIOConcurrencyHelpers", "NIOCore",
                "NIOHTTP1", "NIOHTTPTypes", "NIOHTTPTypesHTTP1", "NIOPosix", "NIOWebSocket", "ServiceLifecycle",
                "Foundation",
            ],
            "TidemarkTesting": [
                "Tidemark", "TidemarkServer", "TidemarkSQLite", "TidemarkCore", "TidemarkWire", "GRDB", "Foundation",
                "Dispatch", "Synchronization",
            ],
        ]
        // The roof stands on everything.
        table["TidemarkCommand"] = table.values.reduce(Set(table.keys)) { $0.union($1) }
            .union(["ArgumentParser", "Configuration", "UnixSignals", "Yams", "Dispatch", "Glibc", "Darwin"])
        return table
    }()

    /// The module that a line imports: `@testable public import struct Module.Sub.Name` gives `Module`.
    static func importedModule(_ line: String) -> String? {
        let access: Set = ["public", "package", "internal", "fileprivate", "private"]
        let kinds: Set = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias", "actor"]
        var words = line.split(whereSeparator: \.isWhitespace)[...]
        while let word = words.first, word.hasPrefix("@") || access.contains(String(word)) { words.removeFirst() }
        guard words.popFirst() == "import" else { return nil }
        if let word = words.first, kinds.contains(String(word)) { words.removeFirst() }
        return words.first?.split(whereSeparator: { $0 == "." || $0 == ";" }).first.map(String.init)
    }
}
