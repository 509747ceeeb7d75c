public import TidemarkWire

extension EntityRule {
    /// The fields of a record, by their names in whichever case (W75): `fields["title"]` is `Title`, too, as both are
    /// one column on a device.
    public struct Fields: Hashable, Sendable, ExpressibleByDictionaryLiteral {
        /// The values, by the names as they are spelled in the record.
        public private(set) var values: [String: Value] = [:]

        /// Takes names and values; of two names that are one, one is taken.
        public init(_ values: [String: Value]) {
            for (name, value) in values.sorted(by: { $0.key < $1.key }) { self[name] = value }
        }

        /// Takes names and values.
        public init(dictionaryLiteral values: (String, Value)...) {
            for (name, value) in values { self[name] = value }
        }

        /// A field's value; `nil` where there is no such field.
        public subscript(_ name: String) -> Value? {
            get { values[spelling(of: name)] }
            set { values[spelling(of: name)] = newValue }
        }

        private func spelling(of name: String) -> String {
            values[name] == nil ? values.keys.first { Identifier.isSameName($0, name) } ?? name : name
        }

        func overlaid(with other: Fields) -> Fields {
            var overlaid = self
            for (name, value) in other.values { overlaid[name] = value }
            return overlaid
        }

        /// The fields under the names that a record or else an operation has for them.
        func data(as record: DataObject, or sent: DataObject) -> DataObject {
            var builder = DataObject.Builder()
            for (name, value) in values.sorted(by: { $0.key < $1.key }) {
                let own = DataObject.canonical(name)[...]
                let spelling = [record, sent].lazy.map { $0.spelling(of: name) }.first { $0 != own } ?? own
                builder.append(name: [UInt8(ascii: "\"")] + spelling + [UInt8(ascii: "\"")]) { $0.value(value) }
            }
            return builder.finish()
        }
    }
}
