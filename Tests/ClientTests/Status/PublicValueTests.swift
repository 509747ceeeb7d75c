import Foundation
import Testing
import Tidemark

/// What an app does for a preview or a test of its own: everything here is made with the public interface alone.
@Suite("Values of the client, made outside of it")
struct PublicValueTests {
    private static let moment = Date(timeIntervalSince1970: 1_800_000_000)

    /// The words of the wire, as an app writes them down for properties of its own.
    private struct Words {
        var scope: Scope = "w:1"
        var record: RecordID = "t1"
        var value: Value = .null
        var version: Version = 7
        var photo: BlobReference?
        var rule = ConflictRule.manual
        var policy = ConflictPolicy.manual
        var ids = EntityDeclaration.IDSource.client
    }

    @Test("an app that imports the client alone can name each word of the wire that the client's interface speaks")
    func words() {
        let words = Words()
        #expect(words.scope.name == "w:1" && words.record.text == "t1" && words.value == .null)
        #expect(words.version == 7 && words.photo == nil)
        #expect(words.rule.rawValue == "manual" && words.policy.rawValue == "manual" && words.ids.rawValue == "client")
    }

    @Test("each result can be made for a preview or a test")
    func values() {
        let conflict = Conflict(
            id: 1, scope: "w:1", entity: "todo", record: "t1", rule: .manual,
            fields: [.init(name: "title", mine: "a", theirs: "b", result: nil)], isOpen: true, noticedAt: Self.moment)
        #expect(conflict["title"]?.mine == "a" && conflict.editedAt == nil && !conflict.isDelete)
        let refused = RejectedOperation(
            id: 1, scope: "w:1", entity: "todo", record: "t1", fields: ["title": "a"],
            code: RejectionCode.recordTooLarge, detail: "It is too large.", rejectedAt: Self.moment,
            dependants: [.init(entity: "tag", record: "g1")])
        #expect(refused.code == "record_too_large" && refused.dependants.count == 1)
        let orphan = OrphanedEdit(
            id: 1, scope: "w:1", entity: "todo", record: "t1", kind: .update, fields: ["title": "a"],
            orphanedAt: Self.moment)
        #expect(orphan.orphanedAt == Self.moment && orphan.group == nil)
        let deleted = DeletedRecord(id: 1, scope: "w:1", entity: "todo", record: "t1", deletedAt: Self.moment)
        #expect(deleted.fields.isEmpty)
        #expect(InferredEdits(table: "todo", updates: 1, deletes: 2).deletes == 2)
        #expect(SyncConfiguration.Backoff(base: .seconds(2)).maximum == .seconds(900))
    }

    @Test("the entries of lists are sentences")
    func entries() {
        var conflict = Conflict(
            id: 1, scope: "w:1", entity: "todo", record: "t1", rule: .lastWriteWins,
            fields: [.init(name: "title", mine: "a", theirs: "b", result: "b")], noticedAt: Self.moment)
        #expect(
            "\(conflict)" == "todo t1, resolved by lastWriteWins: title 'a' here, 'b' elsewhere, 'b' stands.")
        (conflict.isOpen, conflict.isDeletedElsewhere) = (true, true)
        conflict.fields = [.init(name: "rank", mine: 2, theirs: nil, result: nil)]
        #expect("\(conflict)" == "todo t1, open, deleted elsewhere: rank 2 here, deleted elsewhere, undecided.")
        var refused = RejectedOperation(
            id: 1, scope: "w:1", entity: "todo", record: "t1", isInsert: true,
            fields: ["title": "a\nb", "rank": .null], code: "too_far", detail: "It is too far.", hint: "Go nearer.",
            rejectedAt: Self.moment, dependants: [.init(entity: "tag", record: "g1")])
        #expect(
            "\(refused)" == "Insert of todo t1 (rank NULL, title 'a b'): It is too far. (too_far) Go nearer. "
                + "1 edit waits for it.")
        (refused.isInsert, refused.isDelete, refused.fields, refused.hint) = (false, true, [:], "")
        refused.dependants = []
        #expect("\(refused)" == "Delete of todo t1: It is too far. (too_far)")
        let orphan = OrphanedEdit(
            id: 1, scope: "w:1", entity: "todo", record: "t1", kind: .update, fields: ["icon": .blob([1, 2])],
            reason: "The row is another one.", orphanedAt: Self.moment)
        #expect("\(orphan)" == "Update of todo t1 in w:1 (icon 2 bytes) was not sent. The row is another one.")
        let kept = QuarantinedRecord(scope: "w:1", entity: "todo", record: "t1", reason: "UNIQUE failed.")
        #expect("\(kept)" == "todo t1 is kept outside its table: UNIQUE failed.")
        let deleted = DeletedRecord(
            id: 1, scope: "w:1", entity: "todo", record: "t1", fields: ["rank": 0.5], deletedAt: Self.moment)
        #expect(
            "\(deleted)" == "todo t1 (rank 0.5) was deleted elsewhere, heard of at 2027-01-15T08:00:00Z.")
    }

    @Test("a status is a sentence: what the engine does, and what waits")
    func status() {
        #expect(SyncStatus().description == "At rest; nothing waits." && SyncStatus().isConfirmed)
        var status = SyncStatus(
            activity: .waiting(until: Self.moment),
            scopes: ["w:1": .init(head: 9, lastSync: Self.moment, bootstrap: .init(rows: 3))],
            tables: ["todo": .init(confirmed: 3, outgoing: 2)])
        #expect(status.scopes["w:1"]?.lag == 9 && status.rows.total == 5)
        #expect(status.description == "Waiting until 2027-01-15T08:00:00Z; some rows are not confirmed yet.")
        (status.pending, status.rejected) = (2, 1)
        #expect(status.description == "Waiting until 2027-01-15T08:00:00Z: 2 pending, 1 rejected.")
        status.activity = .stopped(SyncError(.scopeForbidden, "No access."))
        (status.pending, status.quarantined) = (0, 4)
        #expect(status.description == "Stopped by scope_forbidden: 1 rejected, 4 quarantined.")
        status = SyncStatus()
        (status.sent, status.blocked, status.undecided, status.orphaned, status.inferred) = (1, 2, 3, 4, 5)
        #expect(
            status.description
                == "At rest: 1 sent without a verdict, 2 blocked, 3 undecided, 4 orphaned, 5 inferred.")
    }

    @Test("a report is a sentence, and its numbers are the sums of its scopes'")
    func report() {
        let quiet = SyncReport(scopes: ["w:1": .init(pushed: 1, received: 2, applied: 1, roundTrips: 1)])
        #expect(quiet.description == "Sent 1 operation, applied 1 of 2 changes, in 1 request and 0.0 s.")
        let busy = SyncReport(
            scopes: [
                "w:1": .init(pushed: 3, rejected: 2, roundTrips: 1, bytesSent: 10),
                "w:2": .init(received: 1, quarantined: 1, conflicts: 1, roundTrips: 1, bytesReceived: 20),
            ], duration: .milliseconds(1234))
        #expect((busy.pushed, busy.rejected, busy.bytesSent, busy.bytesReceived) == (3, 2, 10, 20))
        #expect(
            busy.description == "Sent 3 operations, applied 0 of 1 change: "
                + "2 rejected, 1 quarantined, 1 conflict, in 2 requests and 1.234 s.")
        #expect(
            busy.scopes["w:1"]?.description == "Sent 3 operations, applied 0 of 0 changes: 2 rejected, in 1 request.")
    }

    @Test("a comparison is a sentence")
    func comparison() {
        var report = VerifyReport(scopes: ["w:1": .init(version: 7, tables: ["todo": .init(records: 12)])])
        #expect(report.description == "Compared 12 rows: all as on the server." && report.isClean)
        report.scopes["w:1"]?.tables["tag"] = .init(
            records: 1, differing: 2, repaired: 1, gaps: [.init(column: "seen", reason: .computedDefault)])
        #expect(report.description == "Compared 13 rows: 2 differed, 1 repaired; 1 could not be compared.")
        #expect(!report.isClean)
        let part = report.scopes["w:1"]
        #expect(part?.description == "As of version 7: \(report)")
        #expect(part?.tables["tag"]?.gaps.first?.description == "Column seen was not compared: computed_default.")
        #expect(VerifyReport.Gap(reason: .events).description == "The table was not compared: events.")
        report.scopes["w:1"]?.tables["tag"]?.isCutShort = true
        #expect(report.description.contains("and more differ"))
    }

    @Test("A record's state and an attachment's are told in a sentence, with the reason on one line")
    func states() {
        let records: [(RecordState, String)] = [
            (.confirmed, "As on the server."), (.pending, "Edited here, not sent yet."),
            (.sent, "Sent without a verdict."), (.rejected(reason: "Too\nfar."), #"Rejected: Too\u000afar."#),
            (.blocked(reason: "It waits for tag g1."), "Blocked: It waits for tag g1."),
            (.undecided, "In an open conflict."), (.inferred, "Changed here, and no trigger saw it."),
            (.quarantined(reason: "UNIQUE failed."), "Kept outside its table: UNIQUE failed."),
        ]
        for (state, sentence) in records { #expect(state.description == sentence) }
        let attachments: [(AttachmentState, String)] = [
            (.local, "Here, and not on the server yet."), (.uploading(sent: 1), "Being uploaded, 1 byte so far."),
            (.uploaded, "Here and on the server."), (.remote, "On the server, and not here."),
            (.awaited, "Not uploaded yet by the device that has it."),
            (.downloading(received: 400), "Being downloaded, 400 bytes so far."), (.here, "Here, from the server."),
            (.failed(.fileDamaged), "Failed with file_damaged."),
        ]
        for (state, sentence) in attachments { #expect(state.description == sentence) }
    }

    @Test("The rows of a table, a filling, a remedy and a compared table are told in a sentence")
    func parts() {
        #expect(SyncStatus.Rows().description == "0 rows.")
        #expect(SyncStatus.Rows(confirmed: 1).description == "1 row: 1 confirmed.")
        let rows = SyncStatus.Rows(confirmed: 3, outgoing: 2, stalled: 1, unable: 4, deletes: 1, quarantined: 2)
        #expect(
            rows.description
                == "10 rows: 3 confirmed, 2 outgoing, 1 stalled, 4 unable to travel; 1 delete, 2 quarantined.")
        #expect(SyncStatus.Bootstrap(rows: 1).description == "Received 1 row.")
        let filling = SyncStatus.Bootstrap(rows: 30, total: 100, entity: "note")
        #expect(filling.description == "Received 30 of 100 rows, now those of note.")
        let slow = SyncStatus.Remedy.slowedDown(interval: .seconds(60), until: Self.moment)
        #expect(slow.description == "Slowed down to one exchange in 60 seconds, until 2027-01-15T08:00:00Z.")
        #expect(SyncStatus.Remedy.refilling.description == "Being filled anew for the operator.")
        #expect(
            SyncStatus.Remedy.verifying.description == "Being compared with the server's records for the operator.")
        #expect(
            SyncStatus.Remedy.stopped(message: "Update\nthe app.").description
                == #"Stopped by the operator: Update\u000athe app."#)
        var table = VerifyReport.Table(records: 2, differing: 2, repaired: 1, gaps: [.init(reason: .events)])
        #expect(table.description == "Compared 2 rows: 2 differed, 1 repaired; 1 could not be compared.")
        table.isCutShort = true
        #expect(table.description.contains("and more differ"))
    }

    @Test("A scope's status, a file's measures and a removal are told in a sentence")
    func sentences() {
        #expect(
            "\(InferredEdits(table: "todo", updates: 3, deletes: 1))"
                == "todo has 3 updates and 1 delete that no trigger saw.")
        var progress = AttachmentProgress()
        #expect(progress.description == "0 to upload, 0 to download, 0 bytes left.")
        (progress.uploads, progress.bytesLeft, progress.awaited, progress.failed) = (2, 400, 1, 3)
        #expect(
            progress.description
                == "2 to upload, 0 to download, 400 bytes left, 1 not uploaded by anybody yet, 3 failed.")
        #expect(SyncStatus.ScopeStatus().description == "At rest: not filled yet.")
        let scope = SyncStatus.ScopeStatus(
            activity: .waiting(until: Self.moment), complete: 7, head: 9, lastSync: Self.moment,
            lastError: SyncError(.networkUnavailable, "The server cannot be reached.", hint: ""), failures: 3)
        #expect(
            scope.description == "Waiting until 2027-01-15T08:00:00Z: whole at version 7, 2 behind the server, "
                + "last in sync 2027-01-15T08:00:00Z, failed with network_unavailable 3 times in a row.")
        #expect(SyncStatus.ScopeStatus(bootstrap: .init(rows: 1)).description == "At rest: being filled.")
        let lost = SyncStatus.ScopeStatus(
            complete: 3, accessLost: Self.moment, bootstrap: .init(rows: 1), remedy: .verifying)
        #expect(
            lost.description == "At rest: being filled anew, without access since 2027-01-15T08:00:00Z, "
                + "under an order of the server's operator.")
        var measures = SyncMeasures()
        #expect(measures.description == "Nothing was measured yet.")
        (measures.since, measures.requests, measures.bytesSent, measures.bytesReceived) = (Self.moment, 1, 20, 300)
        (measures.received, measures.applied) = (5, 4)
        let traffic = "Since 2027-01-15T08:00:00Z 1 request, 20 bytes sent, 300 bytes received"
        #expect(measures.description == traffic + "; 4 of 5 changes made a difference.")
        measures.failures = [.request: 1, .apply: 1]
        #expect(measures.description == traffic + "; 4 of 5 changes made a difference; 2 exchanges failed.")
        #expect(
            UninstallReport(tables: ["a"], triggers: 3, libraryTables: 40, indexes: 1).description
                == "Removed 3 triggers, 40 tables of the library, 1 index from 1 synced table.")
        #expect(
            UninstallReport(tables: ["a", "b"], triggers: 6, libraryTables: 40, rows: 9, unsent: .init(pending: 2))
                .description
                == "Removed 6 triggers, 40 tables of the library, 9 rows from 2 synced tables. "
                + "Unsent edits: 2 pending.")
    }
}
