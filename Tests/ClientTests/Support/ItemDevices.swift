import Testing
import TidemarkServer
import TidemarkWire

@testable import Tidemark

/// Devices of one server whose file has a table `item`, empty or with rows that stand there before it is captured.
struct ItemDevices {
    static let empty = "CREATE TABLE item (id TEXT PRIMARY KEY, title TEXT, rank INTEGER);"
    static let rows = "SELECT id, title, rank FROM item ORDER BY id"

    let directory: TestDirectory
    let server: SyncServer

    init() throws {
        directory = try TestDirectory()
        server = try Device.server(in: directory)
    }

    /// The table with rows 'r001' and so on, in the order of their keys.
    static func filled(_ count: Int) -> String {
        let digits = String(count).count
        return empty + """
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < \(count))
            INSERT INTO item SELECT printf('r%0\(digits)d', i), 'row ' || i, i % 7 FROM n;
            """
    }

    func device(_ name: String, _ schema: String = Self.empty) async throws -> Device {
        try await Device(schema, tables: ["item"], server: server, in: directory, name: name)
    }

    /// Expects that nothing of a first capture, and nothing that is not sent, is left in a device's file.
    func expectNothingWaits(_ device: Device) async throws {
        for place in [
            "tidemark_table WHERE uncompared IS NOT NULL", "tidemark_inferred", "tidemark_first_capture",
            "tidemark_shadow_item", "tidemark_state_item", "tidemark_operation WHERE finished_at IS NULL",
        ] { #expect(try await device.count(place) == 0, "\(place)") }
    }
}
