package import TidemarkWire

/// A 64-bit sum as it stands on the wire: sixteen hexadecimal digits, since JSON's numbers do not hold it.
package enum DigestSum {
    package static func write(_ sum: UInt64, to writer: inout JSONWriter) {
        writer.raw(byte: UInt8(ascii: "\""))
        for shift in stride(from: UInt64(60), through: 0, by: -4) {
            let digit = UInt8(truncatingIfNeeded: sum >> shift & 15)
            writer.raw(byte: digit < 10 ? 0x30 + digit : 0x57 + digit)
        }
        writer.raw(byte: UInt8(ascii: "\""))
    }

    package static func read(from reader: inout JSONReader) throws(JSONError) -> UInt64 {
        let start = reader.index
        let text = try reader.readString()
        guard text.utf8.count == 16, let sum = UInt64(text, radix: 16) else { throw JSONError(.wrongType, at: start) }
        return sum
    }
}

extension EntityDigest {
    /// `{"count":3,"records":"…","fields":{"title":{"sum":"…"},"mood":{"sum":"…","count":2,"having":"…"}}}`: what
    /// every record has needs its sum alone. Without `fields` there were too many to tell apart.
    package func write(to writer: inout JSONWriter) {
        writer.raw("{\"count\":")
        writer.integer(count)
        writer.raw(",\"records\":")
        DigestSum.write(records, to: &writer)
        if !isOverfull {
            writer.raw(",\"fields\":{")
            for (index, field) in present.enumerated() {
                writer.raw(index == 0 ? "\"" : ",\"")
                writer.raw(field.name)
                writer.raw("\":{\"sum\":")
                DigestSum.write(field.sum, to: &writer)
                if field.count != count {
                    writer.member("count", field.count)
                    writer.raw(",\"having\":")
                    DigestSum.write(field.having, to: &writer)
                }
                writer.raw("}")
            }
            writer.raw("}")
        }
        writer.raw("}")
    }

    package init(from reader: inout JSONReader) throws(JSONError) {
        var (count, records): (Int64, UInt64) = (0, 0)
        var fields: [Field]?
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "count": count = try reader.readInteger()
            case "records": records = try DigestSum.read(from: &reader)
            case "fields": fields = try Self.readFields(from: &reader)
            default: try reader.skip()
            }
        }
        let whole = (fields ?? []).map { field in
            var field = field
            if field.count < 0 { (field.count, field.having) = (count, records) }
            return field
        }
        self.init(fields: whole, count: count, records: records, isOverfull: fields == nil)
    }

    private static func readFields(from reader: inout JSONReader) throws(JSONError) -> [Field] {
        var fields: [Field] = []
        try reader.enterObject()
        while let name = try reader.nextMember() {
            var field = Field(DataObject.canonical(reader.string(name)))
            // Until it is told otherwise, every record has it.
            field.count = -1
            try reader.enterObject()
            while let member = try reader.nextMember() {
                switch reader.string(member) {
                case "sum": field.sum = try DigestSum.read(from: &reader)
                case "count": field.count = try reader.readInteger(in: 0...Int64.max)
                case "having": field.having = try DigestSum.read(from: &reader)
                default: try reader.skip()
                }
            }
            fields.append(field)
        }
        return fields
    }
}

/// A part of an entity's key range, up to and with one record id, summed over the fields that were asked for together.
package struct DigestPart: Hashable, Sendable {
    /// The last record id of the part; `nil`: to the end of the entity.
    package var through: String?
    package var count: Int64 = 0
    package var records: UInt64 = 0
    package var sum: UInt64 = 0
    /// For fields that some record of the part lacks, in canonical spelling: the sum of the numbers of those that have
    /// it.
    package var having: [(field: [UInt8], sum: UInt64)] = []

    package init() {}

    package init(through: String?, _ digest: EntityDigest, fields: [[UInt8]]) {
        self.through = through
        count = digest.count
        records = digest.records
        for name in fields {
            let field = digest[name]
            sum &+= field?.sum ?? 0
            if digest.isLacked(name) { having.append((name, field?.having ?? 0)) }
        }
    }

    package static func == (lhs: DigestPart, rhs: DigestPart) -> Bool {
        (lhs.through, lhs.count, lhs.records, lhs.sum) == (rhs.through, rhs.count, rhs.records, rhs.sum)
            && lhs.having.elementsEqual(rhs.having) { $0 == $1 }
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(records) }

    package func write(to writer: inout JSONWriter) {
        writer.raw("{\"through\":")
        if let through { writer.string(through) } else { writer.raw("null") }
        writer.member("count", count)
        writer.raw(",\"records\":")
        DigestSum.write(records, to: &writer)
        writer.raw(",\"sum\":")
        DigestSum.write(sum, to: &writer)
        if !having.isEmpty {
            writer.raw(",\"having\":{")
            for (index, field) in having.enumerated() {
                writer.raw(index == 0 ? "\"" : ",\"")
                writer.raw(field.field)
                writer.raw("\":")
                DigestSum.write(field.sum, to: &writer)
            }
            writer.raw("}")
        }
        writer.raw("}")
    }

    package init(from reader: inout JSONReader) throws(JSONError) {
        try reader.enterObject()
        while let name = try reader.nextMember() {
            switch reader.string(name) {
            case "through": through = try reader.readOptionalString()
            case "count": count = try reader.readInteger(in: 0...Int64.max)
            case "records": records = try DigestSum.read(from: &reader)
            case "sum": sum = try DigestSum.read(from: &reader)
            case "having":
                try reader.enterObject()
                while let field = try reader.nextMember() {
                    having.append((DataObject.canonical(reader.string(field)), try DigestSum.read(from: &reader)))
                }
            default: try reader.skip()
            }
        }
    }
}
