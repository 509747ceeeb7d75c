/// Bugs that are planted on purpose, one at a time, to see whether the simulator finds them. A bug that nothing
/// finds shows what the checks do not look at, or what its worlds never do.
///
/// I1–I14 are the guarantees, T1–T40 the traps that a bug falls into.
package enum Mutant: String, CaseIterable, Sendable {
    // MARK: Rows and versions on a device

    /// A row is taken whatever version is known of it: older rows replace newer ones (I4).
    case versionGuardOff
    /// A record with edits takes the version of the row that comes, and not the row (T1, I4).
    case pendingWinsTakingVersion
    /// A verdict ends the edit's place on screen before the row has come (T2, I5).
    case overlayDroppedAtAcknowledgement
    /// The checkpoint is in the file before the page's rows are (I2).
    case checkpointBeforeRows
    /// A page is taken that does not begin where the checkpoint stands (T11, I3).
    case stalePageAccepted
    /// Nothing is remembered of rows above the checkpoint, so that older ones come over them (I5).
    case knownVersionNotRemembered
    /// The rows count as whole at the horizon after each page of a scan (T6).
    case completeAtEachPage
    /// What a page brings is captured as if the app had written it (I8).
    case appliedRowsCaptured
    /// Who holds a unique value is decided by who came first to each device (I4).
    case uniqueValueByArrival
    /// A deleted parent's children keep their references, whatever the schema says (I4).
    case danglingReferencesLeft
    /// A parent that only gives way to another row counts as deleted: its children are deleted for everybody (I1).
    case absentParentDeleted
    /// A tombstone takes the record's row away, also where another scope holds it (T26, I4).
    case deleteReachesOtherScope
    /// Ids that the server has assigned are put in place after what refers to them (T29).
    case idsSubstitutedLast
    /// A patched text is not compared with its mark (T11, I4).
    case patchedTextUnchecked
    /// In mid-scan a row's fields are those that were written since the page before, not since the last scan (I2).
    case partSincePage

    // MARK: The outbox

    /// One verdict ends all that waits to be sent (T4, I7).
    case acknowledgementClearsAll
    /// A verdict ends all edits of its record, also later ones (T4, I7).
    case acknowledgementByRecord
    /// What was sealed is not durable before it is sent: after a crash it is sealed anew (T5, I8).
    case sealedAfterSending
    /// Later edits go into an operation that may have been sent (T5, I8).
    case sealedOperationRewritten
    /// An insert and a delete cancel out, although the insert may have arrived (T5, I6).
    case sentInsertCoalesced
    /// The same lane at every opening: a restored device uses its numbers again (T20, I11).
    case laneKeptAcrossRestarts
    /// The server is told that verdicts are applied which have not come (I8).
    case acknowledgesTheUnanswered
    /// An operation that is put off is forgotten (I7).
    case deferredOperationDropped
    /// A refused operation is sent again and again (T40, I10).
    case rejectionKeepsOperation
    /// A refused operation is not kept for the app to decide about (I7).
    case rejectedOperationDropped
    /// A refused edit stays on screen (I4).
    case rejectedEditStaysOnScreen
    /// A record whose operation has an unknown outcome is not asked for, so that nobody knows what became of it (I4).
    case unknownOutcomeNotFetched
    /// What an edit has overwritten or lost to is not listed (T1).
    case conflictNotRecorded

    // MARK: Filling, loss of access, loss of history

    /// To be filled anew costs a device what it has not sent (I7).
    case resyncWipesOutbox
    /// What a snapshot does not hold stays (T7, I6).
    case snapshotMerges
    /// A snapshot takes out rows that are newer than it (T7, I5).
    case snapshotForgetsKnownVersions
    /// Edits that were not sent are not kept when access is lost (T25, I7).
    case lostAccessDropsEdits
    /// Rows stay on the device when access is lost (T25, I9).
    case lostAccessLeavesRows
    /// A scope that is granted again goes on from its old checkpoint, without the rows (T24, I4).
    case grantDoesNotRefill
    /// Operations that were answered are not replayed to a restored server (T19, I11).
    case finishedNotReplayed
    /// Blocks of finished operations are not unpacked into the outbox before a replay (T19, I11).
    case blocksNotRestored

    // MARK: When to do what

    /// Anything with status 200 is taken for the server's word (T11, I1).
    case foreignAnswerAccepted
    /// 403 counts as an answer that took everything (T36, I7).
    case refusalTakenForSuccess
    /// 503 ends the operations that were sent (T40, I7).
    case transientTakenForPermanent
    /// A wait ends in another wait (I10, I12).
    case backoffNeverEnds
    /// Nobody looks for news by himself (T22, I12).
    case pollingStops
    /// A gap in a lane is only waited for (T36, I12).
    case repairForgotten

    // MARK: What nobody noted

    /// A table that was rebuilt, or whose triggers are gone, is taken for one that was noted all the time (I13).
    case lostCaptureUnnoticed
    /// A row that is gone, and of which no trigger said so, is not deleted (I1).
    case unseenDeleteDropped
    /// A row that no trigger said was made is not sent (I1).
    case unseenInsertDropped
    /// What was written unseen counts as made on the server's newest row, whatever came between (I1).
    case unseenEditTakesHead
    /// Where both sides changed a record, the one that nobody noted goes without a word (I1).
    case unseenConflictUnlisted
    /// What a restored table resurrects of deleted records is sent (I6).
    case resurrectedRowSent
    /// And is thrown away, where it has to be listed (I7).
    case resurrectedRowForgotten
    /// What was written unseen to a record with an operation on its way is not looked at (I1).
    case unseenOverSentForgotten
    /// The evidence does not learn of verdicts (I13).
    case manifestMissesVerdicts
    /// The evidence does not learn of deletions and of parts of rows (I13).
    case manifestMissesRows
    /// Rows without a whole key are not counted (I13).
    case namelessRowUncounted
    /// What the app's triggers make of applied rows stays (I4).
    case triggersChangeAppliedRows
    /// Rows are put right with the app's triggers firing (I4).
    case correctionsFireTriggers

    // MARK: Rows that are older than their capture

    /// A row of the first capture counts as an edit of the server's (I4).
    case seedOverwritesRow
    /// The server takes one for an insert like any other (I4).
    case seedTakenForInsert
    /// Rows under way get no shadow when something happens to them (I2).
    case sealedRunsForgotten

    // MARK: The server

    /// The same operation again has its effect again (T39, I8).
    case serverForgetsKeys
    /// Numbers of all lanes of a device are taken for one sequence (T20, I8).
    case keysWithoutLane
    /// An answer leaves, and its transaction is undone (I1).
    case answersBeforeCommit
    /// The operations of a group are taken one by one (I5).
    case groupTakenApart
    /// Operations of a group that failed are answered as if they stood (I1).
    case undoneGroupAnswered
    /// Deletions do not travel (I4).
    case tombstonesNotSent
    /// A checkpoint is served whose tombstones are gone (T17, I6).
    case retentionFloorIgnored
    /// A scan ends at the newest version, not at its horizon (T16, I3).
    case scanEndsAtHead
    /// A store that has gone back in time goes on as if nothing were lost (T19, I11).
    case lostHistoryUnnoticed
    /// A checkpoint is taken whatever history it is of; only what is pushed is looked at (T19, I11).
    case epochUnchecked
    /// Whoever asks may read (T25, I9).
    case accessNotChecked
    /// A digest goes on counting deleted records (F2).
    case digestMissesDeletes

    // MARK: Attachments

    /// Bytes are shown as they came, whatever their hash (A12).
    case shownUnverified
    /// A file makes room that the server has not acknowledged (A12).
    case evictedUnsent
    /// An upload whose part was taken counts as whole (A12).
    case partTakenForWhole
    /// An upload begins anew, whatever the server has of it (A12).
    case uploadBeginsAnew
    /// Bytes that the server has are sent to it again (A12).
    case sentAlthoughThere
    /// A server that lost its history is not offered again what is here (A12).
    case lostBlobsNotOffered
    /// Bytes that the server has collected while their record waited are taken for sent (A12).
    case collectedBytesTrusted
    /// Bytes of a record that was quarantined before they were sent are not sent (A12).
    case quarantinedBytesForgotten
    /// A row that moves leaves bytes behind that somebody else has put into it (A12).
    case movedBytesForgotten
    /// A part goes on at any offset (W105).
    case offsetUnchecked
    /// What has come is the blob, whatever its hash (W105).
    case blobHashUnchecked
    /// A part is anybody's who sends the same bytes (W105).
    case partOfAnyCaller
    /// A blob that no record names goes at once (W106).
    case blobsNotRetained
    /// Nobody looks which blobs records name (W106).
    case blobNamesUnread

    // MARK: Merging

    /// An edit is held against the row's version, not against its fields' (I4).
    case mergeUsesRowVersion
    /// A write counts for all fields of its record (I4).
    case fieldVersionsForgotten
    /// No edit is seen to be made on an older row (T1).
    case staleEditTakenForSeen
    /// An edit of a deleted record makes it anew (T32, I6).
    case editRevivesDeleted

    /// The bug that is in the program now. Unsafe because it is a plain global: a process plays the worlds of one bug
    /// at a time, and sets it while no world is being played.
    nonisolated(unsafe) package static var planted: Mutant?

    package var isPlanted: Bool { Self.planted == self }
}
