import Testing

@testable import TidemarkPostgres

@Suite("Errors of PostgreSQL, by their codes")
struct PostgresErrorTests {
    /// How the store goes on after an error.
    private enum Handling: CaseIterable {
        /// The engine hears `StoreUnavailable`, where it does not go well at once.
        case mayPass
        /// The transaction is tried again by itself.
        case isWorthRepeating
        /// An operator's table refuses the row, and the others go on.
        case isRefusal
        /// The connection is not used again.
        case endsConnection
    }

    /// Each code stands here with how it is handled, so that a new one has to be thought through.
    private static let handling: [PostgresError.Code: Set<Handling>] = [
        .address: [],
        .connection: [.mayPass, .isWorthRepeating, .endsConnection],
        .conflict: [.mayPass, .isWorthRepeating],
        .locked: [.mayPass],
        .timeout: [.mayPass],
        .readOnly: [.mayPass, .isWorthRepeating, .endsConnection],
        .resources: [.mayPass],
        .stale: [.mayPass, .isWorthRepeating, .endsConnection],
        .permission: [.isRefusal],
        .schema: [.isRefusal],
        .data: [.isRefusal],
        .limit: [.isRefusal],
        .other: [.isRefusal],
    ]

    private func handling(of code: PostgresError.Code) -> Set<Handling> {
        Set(
            Handling.allCases.filter { handling in
                switch handling {
                case .mayPass: code.mayPass
                case .isWorthRepeating: code.isWorthRepeating
                case .isRefusal: code.isRefusal
                case .endsConnection: code.endsConnection
                }
            })
    }

    @Test("each code is handled in one way, and one of a later version as what nobody knows")
    func handled() {
        #expect(Set(PostgresError.Code.all) == Set(Self.handling.keys))
        for code in PostgresError.Code.all { #expect(handling(of: code) == Self.handling[code], "\(code)") }
        #expect(handling(of: PostgresError.Code(rawValue: "of_tomorrow")).isEmpty)
    }

    @Test(
        "PostgreSQL's own codes are sorted, single ones before their classes",
        arguments: [
            ("55P03", PostgresError.Code.locked), ("57014", .timeout), ("25006", .readOnly), ("26000", .stale),
            ("0A000", .stale), ("42501", .permission), ("25P03", .connection), ("08006", .connection),
            ("57P01", .connection), ("40001", .conflict), ("53100", .resources), ("58030", .resources),
            ("28000", .permission), ("22P02", .data), ("23505", .data), ("54000", .limit), ("3D000", .schema),
            ("42P01", .schema), ("XX000", .other), ("", .other),
        ])
    func sorted(state: String, code: PostgresError.Code) { #expect(PostgresError.Code(sqlState: state) == code) }

    @Test("names are told apart, and are words with underscores")
    func names() {
        for names in [PostgresError.Code.all.map(\.rawValue), TableError.Code.all.map(\.rawValue)] {
            #expect(Set(names).count == names.count)
            #expect(names.allSatisfy { $0.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == UInt8(ascii: "_") } })
        }
        #expect(PostgresError.Code.readOnly.description == "read_only")
        #expect(TableError.Code.tableUnknown.description == "table_unknown")
    }
}
