import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkWire

@testable import TidemarkServer

@Suite("Tables that go by another name than they did", .serialized)
struct TableRenamedTests {
    private func triggers(_ bench: TableBench) async throws -> String {
        try await bench.sql(
            """
            SELECT count(*) FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
            WHERE c.relnamespace = '~'::regnamespace
            """)
    }

    @Test("A table in another's place is neither read nor written, and the other is let go of", .timeLimit(.minutes(5)))
    func swapped() async throws {
        let bench = try await TableBench()
        try await bench.sql(
            """
            CREATE TABLE ~.todo (id int PRIMARY KEY, title text); INSERT INTO ~.todo VALUES (1, 'A'), (2, 'B');
            CREATE TABLE ~.next (LIKE ~.todo INCLUDING ALL); INSERT INTO ~.next VALUES (2, 'other')
            """)
        try await bench.attach("todo")
        try await bench.sql(
            """
            ALTER TABLE ~.todo RENAME TO old; ALTER TABLE ~.next RENAME TO todo;
            UPDATE ~.old SET title = title || '!'
            """)
        try await bench.drain()
        #expect(try await bench.records() == ["task/1": ["title": "A"], "task/2": ["title": "B"]])
        #expect(try await bench.store.attachedTables().map(\.notes) == [2])
        let edit = try await bench.exchange([upsert(1, "2", #"{"title":"mine"}"#, base: 2)])
        #expect(edit.errorCode(0) == "table_refused", "\(edit.results)")
        #expect(try await bench.sql("SELECT * FROM ~.todo") == "2|other")
        #expect(try await bench.store.attachedTables().first?.problem != nil)
        // Under its own name again, it goes on where it was.
        try await bench.sql("ALTER TABLE ~.todo RENAME TO next; ALTER TABLE ~.old RENAME TO todo")
        try await bench.drain()
        #expect(try await bench.fields("2") == ["title": "B!"])
        try await bench.sql("ALTER TABLE ~.todo RENAME TO old; UPDATE ~.old SET title = 'late'")
        #expect(try await bench.store.detach("task") == 2)
        #expect(try await triggers(bench) == "0")
        try await bench.sql("UPDATE ~.old SET title = 'free'")
    }

    @Test("A column that was made goes with its table's name changed, too", .timeLimit(.minutes(5)))
    func madeColumn() async throws {
        let bench = try await TableBench()
        try await bench.sql("CREATE TABLE ~.todo (id int PRIMARY KEY, title text)")
        try await bench.attach("todo", .newColumn("scope", initially: "w:1"))
        try await bench.sql("ALTER TABLE ~.todo RENAME TO old; CREATE TABLE ~.todo (id int, scope text)")
        #expect(try await bench.store.detach("task", dropsScopeColumn: true) == 0)
        let columns = """
            SELECT string_agg(attname, ' ' ORDER BY attnum) FROM pg_attribute
            WHERE attrelid = '~.%'::regclass AND attnum > 0 AND NOT attisdropped
            """
        #expect(try await bench.sql(columns.replacing("%", with: "old")) == "id title")
        #expect(try await bench.sql(columns.replacing("%", with: "todo")) == "id scope")
    }
}
