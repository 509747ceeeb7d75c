extension RecordMachine {
    /// The server's row, as far as this device knows it. Where no shadow is kept, a row in the table is the server's.
    ///
    /// That nothing is known yet and that there is no such record are one state: the scope's checkpoint, not the
    /// record, tells them apart.
    package enum Base: RecordRegion {
        /// No such record.
        case absent
        /// No such record; the row stood in its table before that was captured, and gives way to the server's.
        case seeded
        /// The record.
        case present
        /// The record was deleted under an edit: what the edit was made on is kept.
        case deleted

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .row: return (.present, [.saveServerRow])
            case .assumed: return (.present, [])
            case .forbidden:
                switch self {
                case .seeded: return (.absent, [])
                case .absent, .present, .deleted: return (self, [])
                }
            case .pruned: return (.absent, [])
            case .seedBack: return (.seeded, [.saveServerRow])
            case .tombstone:
                switch self {
                case .present: return (.deleted, [.saveServerRow, .cascade])
                case .absent, .seeded, .deleted: return (self, [])
                }
            case .verdict(let verdict, let row): return next(verdict, row)
            case .movedOut:
                switch self {
                case .present: return (self, [])
                case .absent, .seeded, .deleted: return (.absent, [])
                }
            case .orphaned:
                switch self {
                case .seeded, .deleted: return (.absent, [])
                case .absent, .present: return (self, [])
                }
            case .accessLost, .scopeLeft: return (.absent, [])
            case .unseen(let unseen):
                switch unseen {
                case .insert, .seed: return (.absent, [])
                case .update, .delete: return (.present, [])
                }
            case .compared(let compared):
                switch compared {
                case .present: return (.present, [.saveServerRow])
                case .absent: return (.absent, [.saveServerRow])
                case .seeded: return (.seeded, [.saveServerRow])
                case .deleted: return (.deleted, [.saveServerRow])
                }
            case .edited, .reverted, .deleted, .decided, .refusalForgotten, .sealed, .dropped, .blocked, .released,
                .putOff, .resumed, .movedIn, .arrival, .departureSealed, .matched, .versionNoted, .caughtUp,
                .refetchNeeded, .refetched, .conflictFound, .refused, .accepted, .named, .followed, .orphanTaken,
                .historyLost, .replayed, .captureLost, .wroteUnseen, .deletedUnseen, .captureFound:
                return (self, [])
            }
        }

        private func next(_ verdict: Verdict, _ row: ServerRow) -> (Self, [Effect]) {
            switch (row, self) {
            case (.present, _): return (.present, [.saveServerRow])
            case (.gone, _): return (.deleted, [.saveServerRow])
            case (.same, .absent), (.same, .present), (.same, .deleted): return (self, [])
            case (.same, .seeded):
                switch verdict {
                // It is sent once more, as it was.
                case .deferredWrite, .deferredDelete: return (.seeded, [])
                case .taken, .rejected, .conflict, .outcomeUnknown: return (.absent, [.saveServerRow])
                }
            }
        }
    }

    /// An edit made here that is not sealed: the difference between what is on screen and what would be there without
    /// it.
    package enum Local: RecordRegion {
        /// Nothing.
        case clean
        /// Some fields, or the whole row.
        case edited
        /// The row was deleted.
        case deleted

        package func next(_ event: Event) -> (Self, [Effect]) {
            switch event {
            case .edited, .movedIn: return (.edited, [])
            case .deleted: return (.deleted, [])
            case .reverted, .matched, .forbidden, .orphaned, .movedOut, .pruned, .assumed: return (.clean, [])
            case .sealed(let sealed):
                switch sealed {
                case .write, .delete: return (.clean, [])
                case .part: return (self, [])
                }
            case .verdict(let verdict, _):
                switch (verdict, self) {
                case (.deferredWrite, .clean): return (.edited, [])
                case (.deferredDelete, .clean): return (.deleted, [])
                case (.deferredWrite, .edited), (.deferredWrite, .deleted), (.deferredDelete, .edited),
                    (.deferredDelete, .deleted), (.taken, _), (.rejected, _), (.conflict, _), (.outcomeUnknown, _):
                    return (self, [])
                }
            case .unseen(let unseen):
                switch unseen {
                case .insert, .update, .seed: return (.edited, [])
                case .delete: return (.deleted, [])
                }
            case .compared(let compared):
                switch compared {
                case .seeded: return (.clean, [])
                case .present, .absent, .deleted: return (self, [])
                }
            // The row is there again; whether it is another one is found with the triggers.
            case .wroteUnseen: return (self == .deleted ? .edited : self, [])
            case .decided, .refusalForgotten, .dropped, .blocked, .released, .seedBack, .putOff, .resumed, .arrival,
                .departureSealed, .row, .tombstone, .versionNoted, .caughtUp, .refetchNeeded, .refetched,
                .conflictFound, .refused, .accepted, .named, .accessLost, .scopeLeft, .followed, .orphanTaken,
                .historyLost, .replayed, .captureLost, .deletedUnseen, .captureFound:
                return (self, [])
            }
        }
    }
}
