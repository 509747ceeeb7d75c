#if Server
    import Foundation
    import Testing
    import TidemarkObjects

    /// What an app does for a preview or a test of its own: everything here is made with the public interface alone.
    @Suite("Values of the object stores, made outside of them")
    struct ObjectValueTests {
        @Test("each result can be made, and reports and refusals are sentences")
        func values() throws {
            let item = StampedItem(entity: "word", id: "tide", fields: ["meaning": "the sea"])
            #expect(item.fields["meaning"] == "the sea")
            let refusal = StampedRefusal(
                entity: "word", id: "tide", fields: item.fields, code: RejectionCode.recordTooLarge,
                detail: "It is\ntoo large.")
            #expect("\(refusal)" == #"word tide was not taken: It is\u000atoo large. (record_too_large)"#)
            #expect(StampedReport().description == "Sent 0 edits, received 0 items.")
            #expect(StampedReport(sent: 3, received: 1).description == "Sent 3 edits, received 1 item.")
            let moment = Date(timeIntervalSince1970: 1_800_000_000)
            let object = StoredObject(id: "o1", lastModifiedAt: moment, json: Array(#"{"id":"o1","n":1}"#.utf8))
            #expect(object["n"] == 1 && object.lastModifiedAt == moment)
            let error = ObjectStoreError(.cacheCleared, "It was emptied.", hint: "Fetch again.")
            #expect(error.description == "cache_cleared: It was emptied. Fetch again.")
            #expect(ObjectStoreError.Code.all.contains(error.code))
        }
    }
#endif
