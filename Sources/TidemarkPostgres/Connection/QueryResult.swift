import CLibPQ

/// The answer to one request, read where libpq holds it. Belongs to the thread of its connection.
final class QueryResult {
    private let handle: OpaquePointer

    init(_ handle: OpaquePointer) { self.handle = handle }

    deinit { PQclear(handle) }

    /// Rows that came.
    var count: Int { Int(PQntuples(handle)) }

    /// Rows that were inserted, changed or removed.
    var affected: Int { PQcmdTuples(handle).flatMap { Int(String(cString: $0)) } ?? 0 }

    /// The command that was done, such as `COMMIT`.
    var tag: String { PQcmdStatus(handle).map { String(cString: $0) } ?? "" }

    func isNull(_ row: Int, _ column: Int32) -> Bool { PQgetisnull(handle, Int32(row), column) != 0 }

    /// The bytes of a value; they are gone with the result.
    func bytes(_ row: Int, _ column: Int32) -> UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(
            start: PQgetvalue(handle, Int32(row), column), count: Int(PQgetlength(handle, Int32(row), column)))
    }

    /// A copy of the bytes; `nil` for NULL.
    func array(_ row: Int, _ column: Int32) -> [UInt8]? {
        isNull(row, column) ? nil : Array(bytes(row, column))
    }

    func text(_ row: Int, _ column: Int32) -> String { String(decoding: bytes(row, column), as: UTF8.self) }

    /// A `bigint`, `integer`, `smallint` or `oid`.
    func integer(_ row: Int, _ column: Int32) throws(PostgresError) -> Int64 {
        let bytes = bytes(row, column)
        switch bytes.count {
        case 8: return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
        case 4: return Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self)))
        case 2: return Int64(Int16(bigEndian: bytes.loadUnaligned(as: Int16.self)))
        default: throw PostgresError(.schema, "a column is not the number that it should be")
        }
    }

    /// As `integer`; `nil` for NULL.
    func integerIfAny(_ row: Int, _ column: Int32) throws(PostgresError) -> Int64? {
        isNull(row, column) ? nil : try integer(row, column)
    }

    func flag(_ row: Int, _ column: Int32) -> Bool { bytes(row, column).first == 1 }
}
