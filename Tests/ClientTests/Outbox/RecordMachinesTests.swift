import GRDB
import Testing
import TidemarkCore
import TidemarkWire

@testable import Tidemark

@Suite("A record's machine, as the file says it")
struct RecordMachinesTests {
    private let name = RecordMachines.Name(table: "note", record: "n1", scope: Device.scope.name)

    private func machine(on device: Device) async throws -> RecordMachine? {
        try await device.writer.read { [name] db in
            try RecordMachines(db).machine(db, of: name)
        }
    }

    private func machine(after events: RecordMachine.Event...) throws -> RecordMachine {
        var machine = RecordMachine()
        for event in events {
            try #require(machine.accepts(event))
            _ = machine.handle(event)
        }
        return machine
    }

    @Test("an edit on its way up, and its verdict")
    func up() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        try await device.engine().install()
        try await device.sql("INSERT INTO note (id) VALUES ('n1')")
        #expect(try await machine(on: device) == (try machine(after: .edited)))
        _ = try await device.seal()
        #expect(try await machine(on: device) == (try machine(after: .edited, .sealed(.write))))
        try await device.sync()
        #expect(try await machine(on: device) == (try machine(after: .row)))
        try await device.sql("DELETE FROM note WHERE id = 'n1'")
        #expect(try await machine(on: device) == (try machine(after: .row, .deleted)))
    }

    @Test("of a table that is not synced, and of an id that no table has, nothing is said")
    func unknown() async throws {
        let device = try await Device(noteSchema, tables: ["note"])
        let other = RecordMachines.Name(table: "other", record: "n1", scope: Device.scope.name)
        let found = try await device.writer.read { db in
            try RecordMachines(db).machine(db, of: other)
        }
        #expect(found == nil)
    }
}
