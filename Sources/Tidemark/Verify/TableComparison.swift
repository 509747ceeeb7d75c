import GRDB
import TidemarkCore
import TidemarkWire

/// A table against the server's digest of it: which columns can be compared, and whether anything differs.
struct TableComparison: Sendable {
    let shape: TableSchema
    private let scope: Scope
    /// The data columns that can be compared, in their order.
    private(set) var columns: [Int] = []
    private(set) var gaps: [VerifyReport.Gap] = []
    /// Records on the server.
    let count: Int
    /// Records here.
    let ownCount: Int
    let differs: Bool

    /// - Parameter own: the sums of all data columns of the table.
    init(_ shape: TableSchema, in scope: Scope, server: EntityDigest, own: EntityDigest) {
        (self.shape, self.scope) = (shape, scope)
        count = Int(truncatingIfNeeded: server.count)
        ownCount = Int(truncatingIfNeeded: own.count)
        var differs = own.count != server.count || own.records != server.records
        if server.isOverfull {
            gaps = [VerifyReport.Gap(column: nil, reason: .tooManyFields)]
        } else {
            for (index, column) in shape.data.enumerated() {
                guard column.returnsToDefault || index == shape.scopeIndex || !server.isLacked(column.canonicalName)
                else {
                    gaps.append(VerifyReport.Gap(column: column.name, reason: .computedDefault))
                    continue
                }
                columns.append(index)
                let expected = server.sum(
                    of: column.canonicalName, lacking: Self.content(lacking: index, of: shape, in: scope))
                differs = differs || own[column.canonicalName]?.sum ?? 0 != expected
            }
        }
        self.differs = differs
    }

    /// The term of each compared column in the sum of a record that lacks the field on the server.
    var contentsLacking: [(name: [UInt8], content: UInt64)] {
        columns.map { (Array(shape.data[$0].canonicalName), Self.content(lacking: $0, of: shape, in: scope)) }
    }

    private static func content(lacking index: Int, of shape: TableSchema, in scope: Scope) -> UInt64 {
        var writer = JSONWriter(capacity: 32)
        writer.cell(shape.cell(lacking: index, in: scope))
        return writer.bytes.withUnsafeBytes {
            CellHash.content(CellHash.prefix(field: shape.data[index].canonicalName), $0)
        }
    }
}

extension DigestPart {
    /// Returns the part's sum on a device that has the columns and gives a field its default where the record lacks it.
    func sum(defaults: [(name: [UInt8], content: UInt64)]) -> UInt64 {
        having.reduce(sum) { sum, field in
            let content = defaults.first { $0.name == field.field }?.content ?? 0
            return sum &+ content &* (records &- field.sum)
        }
    }
}
