import Foundation
import Testing

@testable import TidemarkCore

@Suite("Machines.md says what the machine does")
struct RecordMachineDocumentTests {
    /// Writes the page's tables anew instead of comparing them, where this variable is set:
    /// `TIDEMARK_WRITE_MACHINES=1 swift test --traits Server --filter RecordMachineDocumentTests`.
    private static let isWriting = ProcessInfo.processInfo.environment["TIDEMARK_WRITE_MACHINES"] != nil

    @Test("The page's tables are those of the code, cell by cell, and no others")
    func tables() throws {
        let text = try String(contentsOf: RecordMachineDocument.page, encoding: .utf8)
        let written = try #require(RecordMachineDocument.part(of: text))
        let made = try RecordMachineDocument.made()
        if Self.isWriting, written != made {
            var page = text
            page.replaceSubrange(written.startIndex..<written.endIndex, with: made)
            return try Data(page.utf8).write(to: RecordMachineDocument.page)
        }
        let (lines, right) = (written.split(separator: "\n"), made.split(separator: "\n"))
        let (extra, lacking) = (Set(lines).subtracting(right), Set(right).subtracting(lines))
        #expect(extra.isEmpty, "The machine does not do this")
        #expect(lacking.isEmpty, "The page does not say this")
        #expect(lines == right, "The page says it in another order")
    }

    @Test("Every event, effect, state and coupling is explained")
    func explained() throws {
        let comments = try Comments()
        let couplings = RecordMachine.Coupling.allCases.filter { comments["Coupling", "\($0)"].isEmpty }
        #expect(couplings.isEmpty)
        let effects = RecordMachine.Effect.allCases.filter { comments["Effect", "\($0)"].isEmpty }
        #expect(effects.isEmpty)
        let events = RecordMachine.Event.allCases.filter {
            comments["Event", String("\($0)".prefix { $0 != "(" })].isEmpty
        }
        #expect(events.isEmpty)
        for type in [
            "Base", "Local", "Queue", "InFlight", "Place", "Block", "Decision", "Identity", "Knowledge", "Access",
            "Orphan", "Capture",
        ] {
            #expect(!comments[type, ""].isEmpty, "\(type)")
        }
    }
}
