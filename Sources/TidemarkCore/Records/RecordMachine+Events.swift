extension RecordMachine {
    /// Something that can happen to a record in a scope.
    package enum Event: Hashable, Sendable, CaseIterable {
        // The app.
        /// The app wrote the row: it is not what it would be without an edit.
        case edited
        /// The app wrote the row, and it is what it would be without an edit.
        case reverted
        /// The app deleted the row.
        case deleted
        /// The app decided an open conflict, or let go of it.
        case decided
        /// A kept refusal is forgotten: a later edit supersedes it, or the app let go of it.
        case refusalForgotten

        // The outbox batcher.
        /// The edits became an operation.
        case sealed(Sealed)
        /// The record was looked at, and there is nothing to send.
        case dropped
        /// The edit cannot be sealed yet, or not at all.
        case blocked(Block)
        /// The block of the edit is gone.
        case released
        /// The operator lets no edit of the kind travel: the row is the server's again, and the edit is kept.
        case forbidden
        /// A row that its table's policy never deletes is gone here: no delete is sent, and the device lets go of it.
        case pruned
        /// The table sends nothing: the row that stands in it passes for the server's, until that comes.
        case assumed
        /// The server has no room for the edit.
        case putOff
        /// The wait for room is over.
        case resumed

        // Moves between scopes.
        /// The record arrives in this scope: its insert here is about to be sealed.
        case movedIn
        /// The record leaves this scope: its insert in another one is sealed.
        case movedOut
        /// The insert in the scope that the record left this one for has its verdict.
        case arrival(Arrival)
        /// The delete in the scope that the record left is sealed.
        case departureSealed

        // The server.
        /// An operation has its verdict.
        case verdict(Verdict, ServerRow)
        /// A page, a snapshot or a fetch brought the server's row.
        case row
        /// A page or a fetch says that the record was deleted, or a snapshot does not hold it.
        case tombstone
        /// The edits say what the server's row now says by itself.
        case matched
        /// A version above the checkpoint is remembered.
        case versionNoted
        /// The scan has reached what was remembered.
        case caughtUp
        /// The server has to be asked for the record by name.
        case refetchNeeded
        /// It was asked.
        case refetched
        /// An open conflict was found outside a verdict: with a delete from elsewhere, or an unseen write.
        case conflictFound

        // The schema.
        /// The app's schema refuses the row, or another row has its unique value.
        case refused
        /// The row fits.
        case accepted

        // The scope.
        /// The server's id took the place of the temporary one.
        case named
        /// The server took the access to the scope away.
        case accessLost
        /// The app left the scope.
        case scopeLeft
        /// The scope is followed from here on.
        case followed
        /// Edits were orphaned since their scope goes, or their table's rule changed.
        case orphaned
        /// Orphaned edits were made anew, or the app let go of them.
        case orphanTaken
        /// An orphaned row of the first capture stands in its table again, and gives way to the server's.
        case seedBack

        // History.
        /// The server has lost history: numbers above what survived mean nothing.
        case historyLost
        /// An operation that the server has lost is sealed again.
        case replayed(Change)

        // Capture.
        /// The table's triggers are gone, or it is another table.
        case captureLost
        /// A row was written while no trigger stood.
        case wroteUnseen
        /// A row was deleted while no trigger stood.
        case deletedUnseen
        /// The table is captured again, and nothing unseen was found of the record.
        case captureFound
        /// The comparison with the manifest found an unseen write.
        case unseen(Unseen)
        /// The unseen write was held against the server's row, and is an edit of it from here on.
        case compared(Compared)

        package static let allCases: [Event] =
            [.edited, .reverted, .deleted, .decided, .refusalForgotten]
            + Sealed.allCases.map(Event.sealed) + [.dropped]
            + Block.allCases.filter { $0 != .none }.map(Event.blocked)
            + [.released, .forbidden, .pruned, .assumed, .putOff, .resumed, .movedIn, .movedOut]
            + Arrival.allCases.map(Event.arrival) + [.departureSealed]
            + verdicts
            + [.row, .tombstone, .matched, .versionNoted, .caughtUp, .refetchNeeded, .refetched]
            + [
                .conflictFound, .refused, .accepted, .named, .accessLost, .scopeLeft, .followed, .orphaned,
                .orphanTaken, .seedBack,
            ]
            + [.historyLost] + Change.allCases.map(Event.replayed)
            + [.captureLost, .wroteUnseen, .deletedUnseen, .captureFound]
            + Unseen.allCases.map(Event.unseen) + Compared.allCases.map(Event.compared)
    }

    /// A verdict that puts an operation off says nothing about the row.
    private static let verdicts: [Event] = Verdict.allCases.flatMap { verdict in
        switch verdict {
        case .deferredWrite, .deferredDelete: [Event.verdict(verdict, .same)]
        case .taken, .rejected, .conflict, .outcomeUnknown: ServerRow.allCases.map { Event.verdict(verdict, $0) }
        }
    }

    /// The kind of an operation.
    package enum Change: Hashable, Sendable, CaseIterable { case write, delete }

    /// The kind of operation that was sealed.
    package enum Sealed: Hashable, Sendable, CaseIterable {
        case write, delete
        /// Only a part of the edits: the rest is sealed behind this part's verdict.
        case part
    }

    /// The server's verdict on an operation, as far as the record's state goes. `applied` and `merged` are one: the
    /// server's row tells them apart.
    package enum Verdict: Hashable, Sendable, CaseIterable {
        case taken, rejected, conflict
        /// Put off: what a write, or a delete, said is an edit again.
        case deferredWrite, deferredDelete
        /// Nobody remembers (`settled` on the wire): assume it was taken until the record is fetched.
        case outcomeUnknown
    }

    /// The word of an answer about the server's row.
    package enum ServerRow: Hashable, Sendable, CaseIterable {
        /// Nothing that is not known here already.
        case same
        /// It has the record.
        case present
        /// It does not.
        case gone
    }

    /// The verdict on the insert in the scope that a record left another one for.
    package enum Arrival: Hashable, Sendable, CaseIterable {
        case taken, refused
        /// Refused, and the row was deleted here meanwhile.
        case refusedAndDeleted
    }

    /// The finding of a comparison with the manifest. See `Inferred.Kind` in the client.
    package enum Unseen: Hashable, Sendable, CaseIterable { case insert, update, delete, seed }

    /// The end that an unseen write came to.
    package enum Compared: Hashable, Sendable, CaseIterable {
        /// An edit of the server's row.
        case present
        /// An edit of a record that the server does not have.
        case absent
        /// A row of the first capture, which gives way to the server's.
        case seeded
        /// An edit of a record that was deleted elsewhere.
        case deleted
    }

    /// Work that an event asks for. The client carries it out in the transaction that takes the event in.
    package enum Effect: Hashable, Sendable, CaseIterable {
        /// Keep the server's row, or that there is none, beneath the edits.
        case saveServerRow
        /// Mark the record, so that the outbox batcher looks at it.
        case enqueue
        /// Take the mark away.
        case dequeue
        /// Write an operation into the outbox.
        case seal
        /// Note the operation's verdict.
        case finish
        /// Give the operation a second key.
        case replay
        /// Write the row, with the edits of it, into the app's table.
        case writeRow
        /// Take the row out of the app's table.
        case deleteRow
        /// Keep the row outside the app's table.
        case quarantine
        /// Keep the row as one that leaves the scope.
        case leave
        /// Let go of the row that is kept outside the app's table.
        case forgetRefused
        /// Note what the edit waits for.
        case block
        /// Forget it.
        case unblock
        /// Keep the refused edit for the app.
        case recordRefusal
        /// Keep the conflict for the app.
        case recordConflict
        /// Let go of what was kept for the app.
        case forgetDecision
        /// Put the server's id in the place of the temporary one.
        case rename
        /// Remember the row's version by itself.
        case noteVersion
        /// Forget it.
        case forgetVersion
        /// Ask the server for the record.
        case refetch
        /// Take the scope's rows off the device.
        case removeScope
        /// Fill the scope.
        case fillScope
        /// Keep the edit as an orphaned one.
        case orphan
        /// Make the edit anew.
        case replayOrphan
        /// Hold the row against the server's before a page is applied.
        case compare
        /// Look at the children of the record that was deleted.
        case cascade
    }
}
