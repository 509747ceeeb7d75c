import Foundation
import GRDB
import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

let verifySchema =
    "CREATE TABLE note (id TEXT PRIMARY KEY, title TEXT, done INTEGER DEFAULT 0, weight REAL);"

/// Changes rows behind the triggers, as a broken disk or a program without them would.
func flip(_ device: Device, _ sql: String) async throws {
    try await device.sql("INSERT INTO tidemark_applying VALUES (1); \(sql); DELETE FROM tidemark_applying;")
}

func noteServer(_ directory: TestDirectory, notes: Int, limits: Limits = Limits()) async throws -> SyncServer {
    let server = SyncServer(store: try Device.store(in: directory), limits: limits)
    try await server.commit(to: "w:1") { changes in
        for index in 0..<notes {
            changes.upsert("note", id: RecordID("n\(index)")!, ["title": .text("Note \(index)"), "done": 0])
        }
    }
    return server
}

func compared(_ report: VerifyReport, _ name: String = "note") throws -> VerifyReport.Table {
    try #require(report.scopes[Device.scope]?.tables[name])
}

/// A wire on which something happens just before the server is asked for a digest.
actor AskingWire: Transport {
    private let inner: any Transport
    private var times: Int
    private let work: @Sendable () async throws -> Void

    init(_ inner: any Transport, times: Int = 1, _ work: @escaping @Sendable () async throws -> Void) {
        (self.inner, self.times, self.work) = (inner, times, work)
    }

    func send(_ request: TransportRequest) async throws -> TransportResponse {
        if request.path == "/sync/digest", times > 0 {
            times -= 1
            try await work()
        }
        return try await inner.send(request)
    }
}
