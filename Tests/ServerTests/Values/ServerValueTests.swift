import Foundation
import Testing
import TidemarkPostgres
import TidemarkSQLite
import TidemarkServer
import TidemarkTesting

/// What the operator's own program does for a test of its own: everything here is made with the public interface alone.
@Suite("Values of the server, made outside of it")
struct ServerValueTests {
    private static let moment = Date(timeIntervalSince1970: 1_800_000_000)

    @Test("a refused edit is a sentence without its fields, and in one line")
    func rejection() {
        var rejection = Rejection(
            id: 1, scope: "w:1", entity: "todo", record: "t1", fields: ["title": "secret"], principal: "ada",
            client: "device-aaaa", lane: "a", number: 7, code: RejectionCode.recordTooLarge,
            detail: "It is too large.", rejectedAt: Self.moment)
        #expect(
            "\(rejection)"
                == "Edit of todo t1 by ada on device-aaaa in w:1 was refused: It is too large. (record_too_large)")
        (rejection.isDelete, rejection.principal) = (true, "a\nb")
        #expect("\(rejection)".hasPrefix(#"Delete of todo t1 by a\u000ab on device-aaaa"#))
    }

    @Test("a hook's event is a sentence")
    func event() {
        let notice = CommitNotice(scope: "w:1", head: 7, epoch: "e", changes: 1, time: Self.moment)
        let told = HookEvent(hook: "push", notice: notice, kind: .told)
        #expect(told.description == "Hook push has told the news for w:1 at version 7.")
        let failed = HookEvent(
            hook: "push", notice: notice, kind: .failed(retryAfter: .seconds(1)), reason: "status\n503")
        #expect(failed.description == #"Hook push has failed for w:1 at version 7: status\u000a503."#)
        #expect(HookEvent(hook: "push", kind: .givenUp).description == "Hook push has given up.")
        #expect(HookEvent(hook: "push", kind: .stopped).description == "Hook push has stopped.")
        #expect(
            HookEvent(hook: "push", kind: .unavailable, reason: "full").description
                == "Hook push is without its store: full.")
    }

    @Test("a rule can be asked about an edit that was made for it")
    func edit() {
        let edit = EntityRule.Edit(
            scope: "w:1", entity: "todo", id: "t1", mine: ["title": "b"], current: ["title": "a", "rank": 1],
            base: ["rank": 1], caller: .init(principal: "ada"), moment: Self.moment)
        #expect(edit.isStale("title") && !edit.isStale("rank") && edit.proposed["rank"] == 1)
        #expect(!edit.caller.isService && edit.caller.client.isEmpty)
    }

    @Test("the findings of a pass over the store make a sentence")
    func passes() {
        var compaction = Compaction()
        #expect(compaction.description == "Of no more use: nothing.")
        (compaction.superseded, compaction.expired, compaction.parts) = (3, 1, 2)
        #expect(compaction.description == "Of no more use: 3 replaced rows, 1 expired change, 2 unfinished uploads.")

        let blob = StoredBlob(hash: "2c26", size: 1, seen: Date(milliseconds: 0))
        var page = BlobPage(blobs: [blob], total: BlobTally(blobs: 2, bytes: 300), next: "2c26")
        #expect(page.description == "1 of 2 blobs, 300 bytes in all, and more behind them.")
        page.next = nil
        #expect(page.description == "1 of 2 blobs, 300 bytes in all.")
        var damaged = DamagedBlob(scope: "w:1", hash: "2c26", size: 1, damage: .differs, isRemoved: true)
        #expect(damaged.description == "Blob 2c26 of w:1, 1 byte: its bytes differ, and it was removed.")
        (damaged.damage, damaged.isRemoved) = (.unreadable, false)
        #expect(damaged.description == "Blob 2c26 of w:1, 1 byte: it cannot be read.")
        var erasure = Erasure()
        #expect(erasure.description == "Erasure of nothing in 0 scopes.")
        (erasure.changes, erasure.devices, erasure.tallies, erasure.scopes) = (3, 1, 2, 1)
        #expect(erasure.description == "Erasure of 3 changes, 1 device, 2 tallies in 1 scope.")
        var rehash = BlobRehash()
        (rehash.expected, rehash.blobs, rehash.bytes) = (4, 3, 120)
        #expect(rehash.description == "Read 3 of 4 blobs, 120 bytes: all whole.")
        (rehash.damaged, rehash.removed) = (2, 1)
        #expect(rehash.description == "Read 3 of 4 blobs, 120 bytes: 2 damaged, 1 removed.")
        var verification = BlobVerification()
        (verification.scopes, verification.blobs, verification.bytes) = (2, 5, 1)
        #expect(verification.description == "Looked at 2 scopes: 5 blobs, 1 byte.")
        (verification.parts, verification.missing, verification.unnamed) = (1, 2, 3)
        #expect(
            verification.description
                == "Looked at 2 scopes: 5 blobs, 1 byte, 1 unfinished upload, 2 missing, 3 unnamed.")
        var backup = StoreBackup()
        (backup.expected, backup.blobs, backup.bytes) = (4, 3, 120)
        #expect(backup.description == "Copied 3 of 4 blobs, 120 bytes.")
        backup.missing = 1
        #expect(backup.description == "Copied 3 of 4 blobs, 120 bytes; 1 is gone or not whole.")
        #expect(BackupRefusal(description: "It is there already.").description == "It is there already.")
    }

    @Test("devices are told in a sentence, in one line")
    func devices() {
        let device = FleetDevice(
            scope: "w:1", name: DeviceName(principal: "ada\n", client: "device-aaaa"), seen: Self.moment, behind: 3)
        #expect(
            device.description
                == #"device-aaaa of ada\u000a in w:1 was seen 2027-01-15T08:00:00Z, 3 changes behind."#)
        #expect(FleetPage(devices: [device], total: 10).description == "Lists 1 of 10 devices.")
        var report = DeviceReport()
        #expect(report.description == "0 edits pending.")
        (report.pending, report.refused, report.quarantined) = (1, 2, 3)
        (report.oldest, report.error) = (Duration.seconds(60), "network_unavailable")
        #expect(
            report.description
                == "1 edit pending, the oldest for 60 seconds; 2 refused; 3 quarantined; network_unavailable.")
        #expect(RemedyOutcome(7, .done).description == "Remedy 7: done.")
        #expect(
            RemedyOutcome(7, .failed, code: "network_unavailable").description
                == "Remedy 7: failed, network_unavailable.")
    }

    @Test("tables of the operator's own are told in a sentence")
    func tables() {
        let status = PostgresStore.TableStatus(
            table: "public.todo", entity: "todo", key: "id", scope: "w:1", notes: 1)
        #expect(status.description == "public.todo is attached as todo: filled, 1 note.")
        let step = PostgresStore.FillStep(rows: 20, placeless: 2, isLast: false)
        #expect(step.description == "Looked at 20 rows, 2 of them in no scope; there are more.")
        #expect(PostgresStore.FillStep(rows: 1, isLast: true).description == "Looked at 1 row; that is all.")
        #expect(PostgresStore.FoundTable(table: "public.todo", name: "todo", columns: ["id"]).columns == ["id"])
    }

    @Test("errors can be made, and their codes are constants")
    func errors() {
        #expect(
            PostgresError(.readOnly, sqlState: "25006", "a standby").description
                == "PostgreSQL error 25006: a standby")
        #expect(TableError(.notOwner, "not yours", hint: "ask").description == "not yours")
        let remedy = RemedyError(.deviceUnknown, "there is no device here", hint: "name one")
        #expect(remedy.description == "there is no device here" && remedy.code.rawValue == "device_unknown")
        #expect(CommitError(code: CommitError.scopeErased, detail: "Gone.").description == "scope_erased: Gone.")
        #expect(!StoreWithoutHooks().description.isEmpty)
        #expect(RemedyError.Code.all.count == 4)
        // The engine has an answer of its own to each.
        #expect(BlobRefusal.all.map(\.rawValue) == ["moved", "scope_full", "caller_full", "erased"])
        let thrown: any Error = BlobRefusal.moved
        #expect(BlobRefusal.moved ~= thrown && !(BlobRefusal.erased ~= thrown))
    }

    @Test("a simulation's report is a sentence")
    func simulation() {
        var report = Simulation.Report()
        (report.worlds, report.events, report.deaths) = (10, 400, ["file": 1])
        #expect(report.description == "Played 10 worlds with 400 events and 1 death.")
    }
}
