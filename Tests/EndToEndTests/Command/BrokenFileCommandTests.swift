#if Server
    import Foundation
    import GRDB
    import Testing

    @testable import TidemarkCommand

    /// What a command says of a file or store that cannot be used: the code and a remedy, and no SQL.
    @Suite struct BrokenFileCommandTests {
        let bench: CommandBench
        init() throws { bench = try CommandBench() }

        private func expectNoSQL(_ errors: String, _ place: SourceLocation = #_sourceLocation) {
            for word in ["SELECT", "PRAGMA", "INSERT", "executing"] {
                #expect(!errors.contains(word), "\(errors)", sourceLocation: place)
            }
        }

        /// Overwrites pages, the first of them 1; of that one the file's own head stays.
        private func damage(_ name: String, pages: ClosedRange<Int>) throws {
            let file = try FileHandle(forUpdating: URL(filePath: bench.path(name)))
            defer { try? file.close() }
            for page in pages {
                try file.seek(toOffset: UInt64((page - 1) * 4096 + (page == 1 ? 100 : 0)))
                file.write(Data(repeating: 0xff, count: 3000))
            }
        }

        @Test("A file with a damaged page is told as such, with a hint and without SQL")
        func damagedFile() async throws {
            try bench.sql(
                "a",
                """
                CREATE TABLE tidemark_meta (key TEXT PRIMARY KEY, value TEXT) WITHOUT ROWID;
                CREATE TABLE item (id TEXT PRIMARY KEY)
                """)
            try damage("a", pages: 2...2)
            let told = try await bench.run(["status", bench.path("a")])
            #expect(told.status == 1)
            #expect(told.errors.contains("(database_failed)") && told.errors.contains("hint: "), "\(told.errors)")
            expectNoSQL(told.errors)
        }

        @Test("A file whose head is damaged is told as such, without SQL")
        func damagedHead() async throws {
            try bench.sql("a", "CREATE TABLE item (id TEXT PRIMARY KEY)")
            try damage("a", pages: 1...1)
            let told = try await bench.run(["status", bench.path("a")])
            #expect(told.status == 1 && told.errors.contains("(database_failed)"), "\(told.errors)")
            expectNoSQL(told.errors)
        }

        @Test("A file that is no database is no store, and is told without SQL")
        func noStore() async throws {
            try Data(repeating: 0x41, count: 8192).write(to: URL(filePath: bench.path("s")))
            let told = try await bench.run(["serve", "--listen", "127.0.0.1:0", "--store", "sqlite:" + bench.path("s")])
            #expect(told.status == 1 && told.errors.contains("(database_failed)"), "\(told.errors)")
            expectNoSQL(told.errors)
        }

        /// A full disk, wherever it is met.
        @Test("A full disk is told as such, wherever it is met, with the hint to make room")
        func fullDisk() {
            let failure = Failure(
                of: DatabaseError(
                    resultCode: .SQLITE_FULL, message: "database or disk is full",
                    sql: "INSERT INTO tidemark_meta VALUES (?)"))
            #expect(failure.what.contains("disk is full") && failure.code == "database_failed")
            #expect(failure.hint?.contains("room") == true)
            expectNoSQL(failure.description)
        }
    }
#endif
