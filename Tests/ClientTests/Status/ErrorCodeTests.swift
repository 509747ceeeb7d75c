import Testing
import TidemarkWire

@testable import Tidemark

@Suite("Codes of errors")
struct ErrorCodeTests {
    /// Each code stands here with who has to act, so that a new one has to be thought through.
    private static let recoveries: [SyncError.Code: SyncError.Recovery] = [
        .networkUnavailable: .wait, .answerUnusable: .wait, .serverUnavailable: .wait, .serverFailed: .wait,
        .quotaExceeded: .wait, .checkpointExpired: .wait, .operationGap: .wait, .databaseFailed: .wait,
        .databaseInterrupted: .wait, .folderFailed: .wait,
        .unauthenticated: .needsApp, .tokenUnavailable: .needsApp, .scopeForbidden: .needsApp,
        .scopeErased: .needsApp, .requestRefused: .needsApp, .declarationMismatch: .needsApp,
        .tableUnsupported: .needsApp, .configurationInvalid: .needsApp, .sessionsUnavailable: .needsApp,
        .groupImpossible: .needsApp, .schemaUnsupported: .needsApp, .recordUnknown: .needsApp, .recordGone: .needsApp,
        .writeSkipped: .needsApp,
        .engineDisconnected: .needsApp, .unsentEdits: .needsApp, .attachmentUnavailable: .needsApp,
        .stoppedByOperator: .needsApp,
    ]

    @Test("every code says who has to act; one of a later version wants the app")
    func recovery() {
        #expect(Set(SyncError.Code.all) == Set(Self.recoveries.keys))
        for (code, recovery) in Self.recoveries { #expect(SyncError(code, "").recovery == recovery, "\(code)") }
        #expect(SyncError(SyncError.Code(rawValue: "of_tomorrow"), "").recovery == .needsApp)
    }

    @Test("names are told apart, and are words with underscores")
    func names() {
        let names = SyncError.Code.all.map(\.rawValue)
        #expect(Set(names).count == names.count)
        #expect(names.allSatisfy { $0.utf8.allSatisfy { (0x61...0x7a).contains($0) || $0 == UInt8(ascii: "_") } })
        #expect(SyncError.Code.networkUnavailable.description == "network_unavailable")
        #expect(VerifyReport.Gap.Reason.all.map(\.description).contains("push_only"))
    }
}
