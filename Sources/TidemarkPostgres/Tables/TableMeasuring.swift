import TidemarkServer

/// How many bytes rows hold, which is asked before they are read: other programs may have put anything into them.
struct RowSizes {
    private var sizes: [[UInt8]: Int] = [:]
    /// Rows that are larger than a record may be, and whether they are in the scope.
    private(set) var tooLarge: [[UInt8]: Bool] = [:]

    init() {}

    /// - Parameter answer: keys, scopes' names and sizes.
    init(_ answer: QueryResult, in scope: Scope, limit: Int) throws {
        for row in 0..<answer.count {
            let (key, size) = (Array(answer.bytes(row, 0)), Int(clamping: try answer.integer(row, 2)))
            if size <= limit {
                sizes[key] = size
            } else {
                tooLarge[key] = !answer.isNull(row, 1) && answer.bytes(row, 1).elementsEqual(scope.name.utf8)
            }
        }
    }

    /// Adds the sizes of the records in the log, which are read too.
    mutating func add(logged answer: QueryResult) throws {
        for row in 0..<answer.count {
            add(Int(clamping: try answer.integer(row, 1)), of: Array(answer.bytes(row, 0)))
        }
    }

    mutating func add(_ size: Int, of key: [UInt8]) {
        let (sum, isTooMuch) = (sizes[key] ?? 0).addingReportingOverflow(size)
        sizes[key] = isTooMuch ? .max : sum
    }

    /// Keys in parts of which each holds up to so many bytes, or is of one row.
    func parts(of keys: [[UInt8]], limit: Int) -> [ArraySlice<[UInt8]>] {
        var parts: [ArraySlice<[UInt8]>] = []
        var (start, bytes) = (keys.startIndex, 0)
        for (index, key) in keys.enumerated() {
            let size = sizes[key] ?? 0
            if bytes > 0, size > limit - bytes {
                parts.append(keys[start..<index])
                (start, bytes) = (index, 0)
            }
            bytes += size
        }
        parts.append(keys[start...])
        return parts
    }
}

extension AttachedTable {
    /// Whether rows have values of any length.
    var hasLongValues: Bool { columns.contains(where: \.isLong) }

    /// Rows by their keys: the key, the scope's name, and how many bytes it would take to read them, at the least.
    func sizes(_ keys: [[UInt8]], _ session: Session) throws -> Result<QueryResult, PostgresError> {
        let sizes = columns.filter(\.isLong).map { "\($0.length)::bigint" }
        return try ask("(\(sizes.joined(separator: " + ")))::bigint", keys, session)
    }

    /// Rows by their keys as `rows(_:_:)` has them; `nil` where some value takes more than so many bytes, which is not
    /// read then.
    func smallRows(
        _ keys: [[UInt8]], limit: Int, _ session: Session
    ) throws -> Result<QueryResult?, PostgresError> {
        let long = columns.filter(\.isLong)
        guard !long.isEmpty else { return try rows(keys, session).map { $0 } }
        let limit = limit / long.count
        var fields = columns.map { column in
            let value = column.reading("t." + column.sql)
            return column.isLong ? "CASE WHEN \(column.length) <= \(limit) THEN \(value) END" : value
        }
        fields.append(long.map { "\($0.length) <= \(limit)" }.joined(separator: " AND "))
        return try ask(fields.joined(separator: ", "), keys, session).map { answer in
            let flag = Int32(columns.count + 2)
            return (0..<answer.count).allSatisfy { answer.flag($0, flag) } ? answer : nil
        }
    }
}

extension AttachedColumn {
    /// The length of a row's value, as an expression.
    fileprivate var length: String { "coalesce(octet_length(\(reading("t." + sql))), 0)" }

    /// A type is short where its spelling has a bound.
    fileprivate var isLong: Bool {
        switch form {
        case .integer, .real, .flag, .instant, .moment, .day: false
        case .blob: true
        case .text: !Self.shortKinds.contains(kind)
        }
    }

    private static let shortKinds: Set<String> = [
        "uuid", "enum", "time", "timetz", "interval", "inet", "cidr", "macaddr", "macaddr8", "money", "name", "char",
        "point", "line", "lseg", "box", "circle", "pg_lsn", "xid", "xid8", "cid", "tid",
    ]
}
