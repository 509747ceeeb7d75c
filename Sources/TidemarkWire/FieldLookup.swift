/// Places by name, for the many that are asked for of one record: one of 2,000 fields that is met field by field must
/// not cost four million comparisons. A few names are looked through faster.
package struct NamePlaces: Sendable {
    private static let few = 16

    private var names: [ArraySlice<UInt8>] = []
    /// Empty as long as there are few.
    private var places: [ArraySlice<UInt8>: Int] = [:]

    package init() {}

    /// Where the name stands, in the order in which they were appended.
    package subscript(_ name: ArraySlice<UInt8>) -> Int? {
        places.isEmpty ? names.firstIndex(of: name) : places[name]
    }

    package mutating func append(_ name: ArraySlice<UInt8>) {
        names.append(name)
        if names.count == Self.few + 1 {
            for (place, name) in names.enumerated() { places[name] = place }
        } else if names.count > Self.few {
            places[name] = names.count - 1
        }
    }
}

/// A record's values by their fields' names.
package struct FieldLookup: Sendable {
    private let object: DataObject
    private var places = NamePlaces()

    fileprivate init(_ object: DataObject) {
        self.object = object
        for field in object.fields { places.append(object.name(field)) }
    }

    package subscript(_ name: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
        places[name].map { object.value(object.fields[$0]) }
    }
}

extension DataObject {
    /// For asking for many fields; ``value(named:)`` does for one.
    package var lookup: FieldLookup { FieldLookup(self) }
}
