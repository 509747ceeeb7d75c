#if Server
    import Tidemark

    /// A decision about a refused edit, in one sentence.
    struct RejectedDecision: Hashable {
        let line: String

        init(retried operation: RejectedOperation, with changes: [String: Value]) {
            let values = changes.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
            let with = values.isEmpty ? "" : ", with " + values.joined(separator: ", ")
            line = "\(operation.id): \(Self.what(operation)) goes again with the next sync\(with)"
        }

        /// - Parameter others: edits of the same group that went along.
        init(discarded operation: RejectedOperation, others: Int) {
            let row =
                operation.isDelete
                ? "the row stays" : operation.isInsert ? "the row is not kept" : "the row is as the server has it"
            let more = others > 0 ? "; so did \(others) more of its group" : ""
            line = "\(operation.id): \(Self.what(operation)) was let go, \(row)\(more)"
        }

        private static func what(_ operation: RejectedOperation) -> String {
            let kind = operation.isDelete ? "delete" : operation.isInsert ? "insert" : "edit"
            return "the \(kind) of \(operation.entity) \(operation.record)"
        }
    }
#endif
