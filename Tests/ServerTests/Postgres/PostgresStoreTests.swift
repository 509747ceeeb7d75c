import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkTesting
import TidemarkWire

@testable import TidemarkServer

@Suite("PostgreSQL's values and errors")
struct PostgresStoreTests {
    @Test(
        "An error never holds the password",
        arguments: [
            "postgres://ada:hush-hush@127.0.0.1:1/x", "postgres://ada:hush-hush@127.0.0.1:port/x",
            "postgrs://ada:hush-hush@127.0.0.1/x", "host=127.0.0.1 port=1 password=hush-hush",
            "postgres://ada:hush-hush@127.0.0.1:1/x?nonsense=1", "postgres://ada@127.0.0.1:1/x?password=hush-hush",
            "postgres://ada:hush-hush@[::1/x", "postgres://ada:%zz-hush-hush@127.0.0.1/x", "ada:hush-hush",
        ])
    func secrets(url: String) throws {
        let error = try #require(throws: PostgresError.self) { try PostgresStore(url: url) }
        #expect(!error.description.contains("hush"))
        #expect(!String(reflecting: error).contains("hush"))
        #expect([.address, .connection].contains(error.code))
    }

    @Test("A password is not told, though the server speaks of it")
    func wrongPassword() throws {
        let cluster = try PostgresCluster.shared.get()
        // The database's name is what libpq quotes.
        let url = cluster.url(database: "hush-hush").replacing("tidemark@", with: "tidemark:hush-hush@")
        let error = try #require(throws: PostgresError.self) { try PostgresStore(url: url) }
        #expect(!error.description.contains("hush"))
        #expect(error.description.contains("does not exist"))
    }

    @Test("Bytes of any kind come back as they were")
    func bytes() async throws {
        let node = try PostgresBench().node()
        let all = (0...255).map { UInt8($0) }
        let hostile = "a\0b'\"\\%_\u{202e}\u{e9}e\u{301}😀"
        let name = LaneName(principal: hostile, client: "device-1", lane: "lane-1")
        let temporary = TemporaryName(principal: hostile, client: "device-1", entity: "task", id: "-1")
        let record: RecordID = "'; DROP TABLE change; --\u{e9}\\"
        let verdict = StoredVerdict(digest: all, members: all, version: nil, baseNumber: nil, tookEffect: true)
        var rejection = StoredRejection.test("s", number: 1, fields: all)
        (rejection.detail, rejection.code, rejection.record, rejection.lane) = (hostile, hostile, hostile, name)
        let kept = rejection
        try await node.write("s") { writer in
            var row = NewRow(entity: "task", record: record, kind: .event, payload: all)
            (row.fieldVersions, row.originals) = (all, [])
            _ = try writer.append(row, at: 1)
            try writer.store(verdict, name, 1, at: 1)
            try writer.note(
                DeviceStanding(version: 1, seen: 1), of: DeviceName(principal: hostile, client: "device-1"))
            try writer.store(record, for: temporary, at: 1)
            try writer.keep(kept, limit: 9)
        }
        try await node.read("s") { reader throws in
            let newest = try reader.newest(entity: "task", record: record)
            #expect(newest?.payload == all)
            #expect(newest?.fieldVersions == all)
            #expect(newest?.originals == [])
            #expect(try reader.verdict(name, 1) == verdict)
            #expect(try reader.id(for: temporary) == record)
            #expect(try reader.lanes(of: DeviceName(principal: hostile, client: "device-1"), limit: 9).count == 1)
        }
        let rejections = try await node.rejections(in: nil, id: nil, limit: 9)
        #expect(rejections.first?.detail == hostile)
        #expect(rejections.first?.record == hostile)
        #expect(rejections.first?.fields == all)
    }

    @Test("A value that it cannot hold is refused without being quoted, and harms nothing beside it")
    func unheld() async throws {
        let node = try PostgresBench().node()
        // The engine lets no such name in.
        let results = await withTaskGroup(of: (Int, Result<Version, any Error>).self) { group in
            for index in 0..<12 {
                group.addTask {
                    let lane = index % 4 == 0 ? "secret\0" : "lane-\(index)"
                    do {
                        return (
                            index,
                            .success(
                                try await node.write("s") { writer in
                                    try writer.store(.applied(nil), .test(lane), 1, at: 1)
                                    return try writer.append(.upsert("a\(index)".record), at: 1)
                                })
                        )
                    } catch { return (index, .failure(error)) }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        for (index, result) in results {
            switch result {
            case .success: #expect(index % 4 != 0)
            case .failure(let error):
                #expect(index % 4 == 0)
                #expect((error as? PostgresError)?.code == .data)
                #expect(!"\(error)".contains("secret"))
            }
        }
        #expect(try await node.read("s") { $0.state.head } == 9)
    }

    @Test("A limit of PostgreSQL's own is not called the caller's data")
    func tooWide() async throws {
        let node = try PostgresBench().node()
        _ = try await node.write("s") { try $0.append(.event("e"), at: 1) }
        var generator = SplitMix64(seed: 1)
        let letters = Array("abcdefghijklmnopqrstuvwxyz0123456789")
        let long = String((0..<9000).map { _ in generator.pick(letters) })
        let error = try await #require(throws: PostgresError.self) {
            try await node.write("s") { writer in
                try writer.note(
                    DeviceStanding(version: 1, seen: 1), of: DeviceName(principal: long, client: "device-1"))
            }
        }
        #expect(error.code == .limit)
        #expect(error.sqlState == "54000")
        #expect(!error.description.contains(long.prefix(20)))
    }

    @Test("Timeouts of any length are taken")
    func timeouts() async throws {
        for timeout in [Duration.seconds(-1), .zero, .seconds(Int64.max)] {
            let node = try PostgresBench().node {
                ($0.statementTimeout, $0.lockTimeout, $0.idleTimeout) = (timeout, timeout, timeout)
            }
            #expect(try await node.write("s") { try $0.append(.event("e"), at: 1) } == 1)
            node.close()
        }
    }

    @Test("Connections that have written nothing for long leave no trace, and write again all the same")
    func traces() async throws {
        let bench = try PostgresBench()
        let (cluster, schema) = (bench.cluster, bench.schema)
        let node = try bench.node { $0.writers = 1 }
        _ = try await node.write("s") { try $0.append(.event("a"), at: 1) }
        try await offPool {
            try cluster.psql("UPDATE \(schema).writer SET used_at = used_at - interval '2 hours'")
            try cluster.psql("INSERT INTO \(schema).writer SELECT i, 0, '2001-01-01' FROM generate_series(1, 500) i")
        }
        _ = try await node.sweep(supersededBefore: 0, limit: 1)
        // What is left is that of the connection that has swept.
        #expect(try await offPool { try cluster.psql("SELECT count(*) FROM \(schema).writer") } == "1")
        #expect(try await node.write("s") { try $0.append(.event("b"), at: 1) } == 2)
        #expect(try await bench.gapless("s", in: node).count == 2)
    }

    @Test("Scans of any length and weight come whole and in order", .timeLimit(.minutes(5)))
    func longScans() async throws {
        let node = try PostgresBench().node()
        let heavy = [UInt8](repeating: 0x78, count: 300_000)
        try await node.write("s") { writer throws in
            for index in 0..<2500 {
                let payload = index % 250 == 7 ? heavy : Array("{\"n\":\(index)}".utf8)
                let row = NewRow(entity: "audit", record: "e\(index % 50)".record, kind: .event, payload: payload)
                _ = try writer.append(row, at: 1)
            }
        }
        try await node.read("s") { reader throws in
            var versions: [Version] = []
            try reader.changes(after: 0, through: .max, tombstonesAfter: 0) { change in
                versions.append(change.version)
                return true
            }
            #expect(versions == Array(1...2500))
            let seen = try reader.seen(of: "audit").map { ($0.record, $0.version) }
            #expect(seen.count == 2500)
            #expect(zip(seen, seen.dropFirst()).allSatisfy { ($0.0, $0.1) < ($1.0, $1.1) })
            #expect(try pair(reader.aged(after: 0, through: 2000, before: .max, limit: 1200)) == [1200, 1200])
        }
    }

    @Test("A schema of somebody else is left alone")
    func strangers() throws {
        let bench = try PostgresBench()
        try bench.cluster.psql("CREATE SCHEMA \(bench.schema)")
        try bench.cluster.psql("CREATE TABLE \(bench.schema).meta (key text, number bigint, bytes bytea)")
        let error = try #require(throws: PostgresError.self) { try bench.node() }
        #expect(error.code == .schema)
        var configuration = PostgresStore.Configuration()
        configuration.schema = "a; DROP"
        let (url, settings) = (bench.cluster.url(), configuration)
        #expect(throws: PostgresError.self) { try PostgresStore(url: url, configuration: settings) }
    }

    @Test("Many nodes that begin at once make one schema")
    func beginnings() async throws {
        let cluster = try PostgresCluster.shared.get()
        var configuration = PostgresStore.Configuration()
        configuration.schema = "together_" + UUID().uuidString.replacing("-", with: "").lowercased()
        let (url, settings) = (cluster.url(), configuration)
        let keys = try await withThrowingTaskGroup(of: [UInt8].self) { group in
            for _ in 0..<6 {
                group.addTask {
                    try await offPool {
                        let node = try PostgresStore(url: url, configuration: settings)
                        defer { node.close() }
                        return node.tokenKey
                    }
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(keys.count == 6)
        #expect(Set(keys).count == 1)
    }

    @Test("After its end a store refuses everything")
    func closed() async throws {
        let node = try PostgresBench().node()
        node.close()
        await #expect(throws: StoreUnavailable.self) { try await node.read("s") { $0.state.head } }
        await #expect(throws: StoreUnavailable.self) { try await node.write("s") { $0.state.head } }
    }
}

extension String {
    fileprivate var record: RecordID { RecordID(stringLiteral: self) }
}
