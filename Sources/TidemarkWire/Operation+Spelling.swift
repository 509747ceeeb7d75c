extension Operation {
    /// The operation with its fields under the names by which they are known (W75): a name that differs from one of
    /// them only in the case of ASCII letters is the same field, as it is the same column for SQLite. One whose names
    /// are all known costs a look at each.
    ///
    /// - Parameters:
    ///   - record: the record that it meets, as the log has it.
    ///   - declared: the names that are declared for the entity's fields; they count where the record lacks the field.
    package func spelled(as record: DataObject?, or declared: [String]) -> Operation {
        guard record != nil || !declared.isEmpty else { return self }
        let known = record?.lookup
        let names = fields.fields.map(fields.name) + patches.map { DataObject.canonical($0.field)[...] }
        let unknown = (names + fieldBases.all.map(\.name)).filter { known?[$0] == nil }
        guard !unknown.isEmpty else { return self }
        let spellings = Self.spellings(record, declared)
        var respelled: [ArraySlice<UInt8>: ArraySlice<UInt8>] = [:]
        for name in unknown {
            if let spelling = spellings[Identifier.folded(name)], spelling != name { respelled[name] = spelling }
        }
        return respelled.isEmpty ? self : respelling(respelled)
    }

    private static func spellings(_ record: DataObject?, _ declared: [String]) -> [[UInt8]: ArraySlice<UInt8>] {
        var spellings: [[UInt8]: ArraySlice<UInt8>] = [:]
        let known = record.map { record in record.fields.map(record.name) } ?? []
        for name in known + declared.map({ DataObject.canonical($0)[...] }) {
            let key = Identifier.folded(name)
            if spellings[key] == nil { spellings[key] = name }
        }
        return spellings
    }

    private func respelling(_ names: [ArraySlice<UInt8>: ArraySlice<UInt8>]) -> Operation {
        var operation = self
        var builder = DataObject.Builder(capacity: fields.bytes.count)
        var taken: Set<ArraySlice<UInt8>> = []
        for field in fields.fields {
            let name = names[fields.name(field)] ?? fields.name(field)
            // An operation from the wire names each field once; so does everything else that is stored.
            if taken.insert(name).inserted { builder.append(canonicalName: name, canonicalValue: fields.value(field)) }
        }
        operation.fields = builder.finish()
        operation.fieldBases = [:]
        for (name, base) in fieldBases.all {
            let name = names[name] ?? name
            operation.fieldBases[name] = min(operation.fieldBases[name] ?? base, base)
        }
        for index in patches.indices {
            guard let name = names[DataObject.canonical(patches[index].field)[...]] else { continue }
            operation.patches[index].field = DataObject.string(canonical: name)
        }
        return operation
    }
}
