import TidemarkWire

/// Why a key cannot be a record id (Protocol.md), and what to change, without the key's value.
struct KeyFlaw: Hashable, Sendable {
    let detail: String
    let hint: String

    init(_ key: [Cell], of shape: TableSchema) {
        let (why, remedy) = Self.cause(key, shape)
        detail = "Its key cannot be a record id: \(why)."
        hint = "\(remedy); the row is sent then."
    }

    private static func cause(_ key: [Cell], _ shape: TableSchema) -> (why: String, remedy: String) {
        for (column, cell) in zip(shape.key, key) {
            let name = "column '\(column.name)'"
            if cell == .null { return ("\(name) is NULL", "Give \(name) a value") }
            if !cell.isSendable {
                return ("\(name) holds text that is not UTF-8", "Write the value of \(name) as UTF-8")
            }
        }
        let names = shape.key.map { "'\($0.name)'" }.joined(separator: ", ")
        guard shape.key.count == 1, let column = shape.key.first, [.text, .integer].contains(column.affinity) else {
            // Of other keys the id is a JSON array, which is never empty and holds no control character.
            // The text of a key ends with a line feed.
            let size = KeyText(key).text.utf8.count - 1
            return (
                "\(names) as a JSON array \(key.count == 1 ? "has" : "have") \(size) bytes, and an id has up to "
                    + "\(Identifier.recordLimit)",
                "Shorten the values of \(names)"
            )
        }
        guard column.affinity == .text, case .text(let bytes)? = key.first else {
            let type = column.affinity == .text ? "text" : "an integer"
            return ("column \(names) does not hold \(type)", "Write \(type) into column \(names)")
        }
        if bytes.isEmpty { return ("column \(names) is empty", "Give column \(names) a value that names the row") }
        if let control = bytes.first(where: { $0 < 0x20 || $0 == 0x7f }) {
            let character = Self.controls[control] ?? "a control character"
            return (
                "column \(names) holds \(character)", "Take tabs, line feeds and other control characters out of it"
            )
        }
        return (
            "column \(names) has \(bytes.count) bytes, and an id has up to \(Identifier.recordLimit)",
            "Shorten column \(names) to \(Identifier.recordLimit) bytes"
        )
    }

    private static let controls: [UInt8: String] = [
        0: "a NUL character", 9: "a tab", 10: "a line feed", 13: "a carriage return",
    ]
}
