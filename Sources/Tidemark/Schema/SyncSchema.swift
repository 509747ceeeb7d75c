import GRDB
import TidemarkWire

/// The synced tables as they stand in the file, read once and again after each change of the schema.
struct SyncSchema: Hashable, Sendable {
    var shapes: [TableSchema]
    var clientID: String
    var schemaVersion: Int64
    /// Places in JSON documents that hold ids, as the app declared them.
    var documents: [DocumentReference] = []

    /// SQLite's own counter of schema changes, by which a migration at run time is noticed.
    static func version(_ db: Database) throws -> Int64 {
        try Query(db, "PRAGMA schema_version").first(db) { $0.integer(0) } ?? 0
    }

    subscript(_ table: String) -> TableSchema? {
        // Nearly always the very same text.
        shapes.first { $0.name == table } ?? shapes.first { $0.name.isSameName(as: table) }
    }
    /// The tables that may hold rows of a scope; those whose scope is constant hold nothing else.
    func shapes(in scope: Scope) -> [TableSchema] { shapes.filter { $0.rule.mayHaveRows(in: scope) } }

    /// Returns warnings about the schema, for the app's developer.
    ///
    /// - Parameter assigned: tables whose ids the operator has the server assign.
    func warnings(assigned: Set<SQLName>) -> [String] {
        let remarks = shapes.flatMap { shape in
            shape.remarks.filter { $0 != .countedIDs(table: shape.name) || !assigned.contains(SQLName(shape.name)) }
        }
        return SchemaRemark.summary(remarks) + shapes.flatMap(\.warnings)
    }

    /// Refuses to go on with tables that a migration has changed since they were read.
    func check(_ db: Database, _ scope: Scope) throws {
        guard schemaVersion == (try SyncSchema.version(db)) else {
            throw SyncError(
                .databaseFailed, "The app's schema changed just now.", hint: "It is tried again by itself.",
                scope: scope)
        }
    }
}

/// A place in a JSON document that holds another record's id, as the app declared it.
struct DocumentReference: Hashable, Sendable {
    var table: String
    var column: String
    var path: String
    var entity: String
}
