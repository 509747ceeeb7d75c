import Foundation
import GRDB
import TidemarkWire

/// Where a page stands among the pages of one fetch.
struct PagePlace: Hashable, Sendable {
    var isFirst: Bool
    var isLast: Bool
    /// The time of the fetch's first page.
    var begun: Int64
}

extension ObjectCache {
    /// Takes one page of a fetch.
    ///
    /// No object is skipped if the fetch ends behind this page: the stamp moves with the page only where the pages come
    /// in the order of times, else with the last page, to the time of the first.
    func take(_ page: ObjectPage, of query: ObjectQuery, _ delta: Delta, _ place: PagePlace) async throws {
        try await write { db in
            var state = try CollectionState.take(query, db)
            for id in page.deleted { try Self.drop(id.text, from: state, query, db) }
            switch delta {
            case .nothing:
                if place.isFirst { state.scan = try Self.beginScan(state, db) }
            case .held:
                if place.isFirst, query.isWhole { try Self.join(state, query, db) }
            case .since: break
            }
            for object in page.objects {
                try Self.put(object, of: query.name, db)
                try db.execute(
                    literal: """
                        INSERT INTO tidemark_member VALUES (\(state.key), \(object.id.text), \(state.scan))
                        ON CONFLICT DO UPDATE SET scan = excluded.scan
                        """)
            }
            if delta == .nothing, place.isLast { try Self.endScan(state, query, db) }
            if case .since = delta {
                try Self.move(state, to: page.stamp, db)
            } else if place.isLast {
                try Self.move(state, to: place.begun, db)
            }
        }
    }

    /// Takes an object that was asked for alone. It is in no collection but those it was in before.
    func take(_ object: StoredObject, of name: String) async throws {
        try await write { db in try Self.put(object, of: name, db) }
    }

    /// The server has no such object, or shows it no more. Collections keep it until they are told themselves: a time
    /// that they have shown says nothing of an object that comes back unchanged.
    func miss(_ id: RecordID, of name: String) async throws {
        try await write { db in
            try db.execute(
                literal: "UPDATE tidemark_object SET missing = 1 WHERE class = \(name) AND id = \(id.text)")
            try Self.dropUnlessMember(id.text, of: name, db)
        }
    }

    // MARK: Objects

    private static func put(_ object: StoredObject, of name: String, _ db: Database) throws {
        let statement = try db.cachedStatement(
            sql: """
                INSERT INTO tidemark_object (class, id, modified, json) VALUES (?, ?, ?, ?)
                ON CONFLICT DO UPDATE SET modified = excluded.modified, json = excluded.json, missing = 0
                """)
        try statement.execute(arguments: [name, object.id.text, object.lastModifiedAt.milliseconds, Data(object.json)])
    }

    /// An id that the server names as one to drop. Of all objects of a class: it is gone, from every collection. Of a
    /// query: it leaves this collection, and the cache with it where no other one has it.
    private static func drop(_ id: String, from state: CollectionState, _ query: ObjectQuery, _ db: Database) throws {
        if query.isWhole {
            try db.execute(
                literal: """
                    DELETE FROM tidemark_member WHERE id = \(id)
                    AND collection IN (SELECT key FROM tidemark_collection WHERE class = \(query.name))
                    """)
        } else {
            try db.execute(
                literal: "DELETE FROM tidemark_member WHERE collection = \(state.key) AND id = \(id)")
        }
        try dropUnlessMember(id, of: query.name, db)
    }

    private static func dropUnlessMember(_ id: String, of name: String, _ db: Database) throws {
        try db.execute(
            literal: """
                DELETE FROM tidemark_object WHERE class = \(name) AND id = \(id) AND NOT EXISTS (
                    SELECT 1 FROM tidemark_member AS member JOIN tidemark_collection ON key = collection
                    WHERE class = \(name) AND member.id = \(id))
                """)
    }

    // MARK: Collections

    /// The map named every object of the class, and those that the answer has not dropped are in the list.
    private static func join(_ state: CollectionState, _ query: ObjectQuery, _ db: Database) throws {
        try db.execute(
            literal: """
                INSERT OR IGNORE INTO tidemark_member
                SELECT \(state.key), id, \(state.scan) FROM tidemark_object WHERE class = \(query.name)
                """)
    }

    private static func beginScan(_ state: CollectionState, _ db: Database) throws -> Int64 {
        try db.execute(literal: "UPDATE tidemark_collection SET scan = scan + 1 WHERE key = \(state.key)")
        return state.scan + 1
    }

    /// Objects that the complete list has not shown leave the collection. A list of the whole class takes everything
    /// else that was kept of the class with it.
    private static func endScan(_ state: CollectionState, _ query: ObjectQuery, _ db: Database) throws {
        let request = SQLRequest<String>(
            literal: query.isWhole
                ? """
                SELECT id FROM tidemark_object WHERE class = \(query.name) AND id NOT IN
                (SELECT id FROM tidemark_member WHERE collection = \(state.key) AND scan = \(state.scan))
                """ : "SELECT id FROM tidemark_member WHERE collection = \(state.key) AND scan <> \(state.scan)")
        for id in try request.fetchAll(db) { try drop(id, from: state, query, db) }
    }

    private static func move(_ state: CollectionState, to stamp: Int64, _ db: Database) throws {
        try db.execute(literal: "UPDATE tidemark_collection SET stamp = \(stamp) WHERE key = \(state.key)")
    }
}
