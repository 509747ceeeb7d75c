/// How names and texts of the catalogue stand in a statement.
enum SQL {
    static func quoted(_ name: String) -> String { "\"\(name.replacing("\"", with: "\"\""))\"" }

    /// Needs `standard_conforming_strings`, which the statements that use it set.
    static func literal(_ text: String) -> String { "'\(text.replacing("'", with: "''"))'" }
}
