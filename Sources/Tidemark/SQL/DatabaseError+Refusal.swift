import GRDB

extension DatabaseError {
    /// Whether the app's schema refused one row, which must not stop the others.
    var refusesRow: Bool {
        switch resultCode {
        case .SQLITE_CONSTRAINT, .SQLITE_MISMATCH, .SQLITE_TOOBIG, .SQLITE_ERROR: true
        default: false
        }
    }

    /// Whether other rows decide it, so that the row is tried again after each page: a unique value that another one
    /// holds, or a trigger of the app's own that looks for one.
    var dependsOnOthers: Bool { isUniqueViolation || extendedResultCode == .SQLITE_CONSTRAINT_TRIGGER }

    var isUniqueViolation: Bool {
        [.SQLITE_CONSTRAINT_UNIQUE, .SQLITE_CONSTRAINT_PRIMARYKEY, .SQLITE_CONSTRAINT_ROWID]
            .contains(extendedResultCode)
    }

    /// The refusal in words that hold no row data.
    var refusal: String { message ?? "\(extendedResultCode)" }
}
