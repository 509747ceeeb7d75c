package import TidemarkWire

/// The digest of an entity's live records: for their existence, and for each field, a sum of what the cells count for
/// (``CellHash``). Sums wrap, so that a record is taken in and out in any order, at a cost that follows the change.
package struct EntityDigest: Hashable, Sendable {
    package struct Field: Hashable, Sendable {
        /// In its canonical spelling, as it came first: names that differ only in case are one field's (W75).
        package var name: [UInt8]
        /// Live records that have the field, NULL or not.
        package var count: Int64 = 0
        /// The sum of those records' numbers.
        package var having: UInt64 = 0
        /// The sum of the field's cells.
        package var sum: UInt64 = 0
        package let prefix: SipHash

        package init(_ name: some Collection<UInt8>) {
            self.name = Array(name)
            prefix = CellHash.prefix(field: name)
        }
    }

    /// Fields of an entity that are told apart. With more, only the existence of its records is compared.
    package static let fieldLimit = 500

    /// Live records.
    package private(set) var count: Int64 = 0
    /// The sum of their numbers.
    package private(set) var records: UInt64 = 0
    package private(set) var fields: [Field] = []
    /// There were more fields than are told apart.
    package private(set) var isOverfull = false

    package init() {}

    package init(fields: [Field], count: Int64, records: UInt64, isOverfull: Bool = false) {
        (self.fields, self.count, self.records, self.isOverfull) = (fields, count, records, isOverfull)
    }

    package subscript(_ name: some Collection<UInt8>) -> Field? {
        fields.first { $0.name.elementsEqual(name) } ?? fields.first { Identifier.isSameName($0.name, name) }
    }

    package var isEmpty: Bool { count == 0 && records == 0 && fields.allSatisfy { $0.count == 0 } }

    // MARK: Records by their payloads

    /// Replaces one record's row in the sums by another one; `nil` stands for no row.
    package mutating func replace(
        _ record: UInt64, _ old: UnsafeRawBufferPointer?, with new: UnsafeRawBufferPointer?
    ) throws(JSONError) {
        switch (old, new) {
        case (nil, nil): return
        case (let old?, let new?): try exchange(record, old, new)
        case (nil, let new?):
            count &+= 1
            records &+= record
            try take(Cells(new), weight: record, 1)
        case (let old?, nil):
            count &-= 1
            records &-= record
            try take(Cells(old), weight: 0 &- record, -1)
        }
    }

    /// Replaces a row cell by cell, and hashes only the cells that differ. Rows of one record name their fields in the
    /// same order, as far as they go together.
    private mutating func exchange(
        _ record: UInt64, _ old: UnsafeRawBufferPointer, _ new: UnsafeRawBufferPointer
    ) throws(JSONError) {
        var (before, after) = (try Cells(old), try Cells(new))
        while true {
            let (was, cell) = (before, after)
            guard let first = try before.next(), let second = try after.next(),
                old[first.name].elementsEqual(new[second.name])
            else {
                try take(was, weight: 0 &- record, -1)
                return try take(cell, weight: record, 1)
            }
            guard !isOverfull, !equal(old[first.value], new[second.value]) else { continue }
            guard let index = index(of: old[first.name]) else { continue }
            let prefix = fields[index].prefix
            let change =
                CellHash.content(prefix, UnsafeRawBufferPointer(rebasing: new[second.value]))
                &- CellHash.content(prefix, UnsafeRawBufferPointer(rebasing: old[first.value]))
            fields[index].sum &+= record &* change
        }
    }

    private func equal(_ left: Slice<UnsafeRawBufferPointer>, _ right: Slice<UnsafeRawBufferPointer>) -> Bool {
        left.count == right.count && left.elementsEqual(right)
    }

    /// Takes the rest of a row in, or out by a weight that is the record's number negated.
    private mutating func take(_ cells: consuming Cells, weight: UInt64, _ step: Int64) throws(JSONError) {
        guard !isOverfull else { return }
        while let cell = try cells.next() {
            guard let index = index(of: cells.bytes[cell.name]) else { return }
            fields[index].count &+= step
            fields[index].having &+= weight
            let value = UnsafeRawBufferPointer(rebasing: cells.bytes[cell.value])
            fields[index].sum &+= weight &* CellHash.content(fields[index].prefix, value)
        }
    }

    /// The field's place; `nil` where there is no room for another one.
    private mutating func index(of name: Slice<UnsafeRawBufferPointer>) -> Int? {
        // Rows name their fields in much the same order, so the one behind the last is the first guess.
        if guess < fields.count, fields[guess].name.elementsEqual(name) {
            defer { guess += 1 }
            return guess
        }
        if let found = fields.firstIndex(where: { $0.name.elementsEqual(name) })
            ?? fields.firstIndex(where: { Identifier.isSameName($0.name, name) })
        {
            guess = found + 1
            return found
        }
        if fields.count >= Self.fieldLimit { fields.removeAll { $0.count == 0 } }
        guard fields.count < Self.fieldLimit else {
            (fields, isOverfull) = ([], true)
            return nil
        }
        fields.append(Field(name))
        guess = 0
        return fields.count - 1
    }

    private var guess = 0

    // MARK: Records by their cells, where every record has every field

    /// Takes in one record; `values` are the canonical bytes of `fields`, in their order.
    package mutating func add(_ record: UInt64, _ bytes: UnsafeRawBufferPointer, values: [Range<Int>]) {
        count &+= 1
        records &+= record
        for (index, value) in values.enumerated() where index < fields.count {
            let content = CellHash.content(fields[index].prefix, UnsafeRawBufferPointer(rebasing: bytes[value]))
            fields[index].count &+= 1
            fields[index].having &+= record
            fields[index].sum &+= record &* content
        }
    }
}

extension EntityDigest {
    package static func == (lhs: EntityDigest, rhs: EntityDigest) -> Bool {
        lhs.count == rhs.count && lhs.records == rhs.records && lhs.isOverfull == rhs.isOverfull
            && lhs.folded == rhs.folded
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(records) }

    /// The same fields under names without case: which spelling came first says nothing of what is summed.
    private var folded: [Field] {
        present.map { field in
            var folded = field
            folded.name = Identifier.folded(field.name)
            return folded
        }.sorted { $0.name.lexicographicallyPrecedes($1.name) }
    }

    /// The fields that some record has, by name.
    package var present: [Field] {
        fields.filter { $0.count != 0 }.sorted { $0.name.lexicographicallyPrecedes($1.name) }
    }

    /// The sum that a field would have if the records that lack it had `content` in it.
    package func sum(of name: some Collection<UInt8>, lacking content: UInt64) -> UInt64 {
        let field = self[name]
        return (field?.sum ?? 0) &+ content &* (records &- (field?.having ?? 0))
    }

    /// Whether some records lack a field.
    package func isLacked(_ name: some Collection<UInt8>) -> Bool { (self[name]?.count ?? 0) != count }
}

/// Scans a stored payload field by field.
private struct Cells {
    let bytes: UnsafeRawBufferPointer
    private var reader: JSONReader

    init(_ bytes: UnsafeRawBufferPointer) throws(JSONError) {
        self.bytes = bytes
        reader = JSONReader(bytes)
        try reader.enterObject()
    }

    mutating func next() throws(JSONError) -> (name: Range<Int>, value: Range<Int>)? {
        guard let name = try reader.nextMember() else { return nil }
        return (name.range, try reader.skip())
    }
}

// MARK: - As stored

extension EntityDigest {
    private static let format: Int64 = 1

    /// The bytes that a store keeps.
    package func stored() -> [UInt8] {
        var writer = ByteWriter()
        for number in [Self.format, isOverfull ? 1 : 0, count, Int64(bitPattern: records)] { writer.integer(number) }
        for field in fields where field.count != 0 {
            writer.run(field.name)
            writer.integer(field.count)
            writer.integer(Int64(bitPattern: field.having))
            writer.integer(Int64(bitPattern: field.sum))
        }
        return writer.bytes
    }

    /// Reads what ``stored()`` wrote; `nil` where the bytes are something else.
    package init?(stored: [UInt8]) {
        self.init()
        var reader = ByteReader(stored)
        guard reader.integer() == Self.format, let flag = reader.integer(), let count = reader.integer(),
            let records = reader.integer()
        else { return nil }
        (isOverfull, self.count, self.records) = (flag == 1, count, UInt64(bitPattern: records))
        while !reader.isAtEnd {
            guard let name = reader.run(), let count = reader.integer(), let having = reader.integer(),
                let sum = reader.integer()
            else { return nil }
            var field = Field(name)
            (field.count, field.having, field.sum) = (count, UInt64(bitPattern: having), UInt64(bitPattern: sum))
            fields.append(field)
        }
    }
}
