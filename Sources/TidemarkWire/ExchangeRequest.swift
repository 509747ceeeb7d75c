/// One round trip's question: operations up, and the place from which changes are wanted (Protocol.md).
package struct ExchangeRequest: Hashable, Sendable {
    package var protocolVersion: Int64 = 1
    package var scope: Scope
    package var clientID: String
    package var since: String?
    package var limit: Int64?
    /// Per lane, the number up to which verdicts are safely applied on the device.
    package var acked: [String: Int64] = [:]
    package var operations: [SealedOperation] = []
    /// How rows may come that the reader holds an older form of.
    package var takes: Differences = []
    /// The device's word on itself, where it tells something new (W100).
    package var report: DeviceReport?

    package struct SealedOperation: Hashable, Sendable {
        package var key: OperationKey
        package var operation: Operation

        package init(key: OperationKey, operation: Operation) {
            self.key = key
            self.operation = operation
        }
    }

    package init(scope: Scope, clientID: String) {
        self.scope = scope
        self.clientID = clientID
    }
}

/// How a changed row may come to a reader that holds the one before, where that takes less than the whole row.
package struct Differences: OptionSet, Hashable, Sendable {
    package let rawValue: UInt8

    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package init(patches: Bool, fields: Bool) {
        self = []
        if patches { insert(.patches) }
        if fields { insert(.fields) }
    }

    /// Large texts as patches (W49).
    package static let patches = Differences(rawValue: 1)
    /// Only the fields that were written since (W90).
    package static let fields = Differences(rawValue: 2)
}

extension ExchangeRequest {
    /// Reads a request's body. `operationLimit` is checked while reading, so that a long list is not built first.
    package init(from bytes: UnsafeRawBufferPointer, operationLimit: Int) throws(JSONError) {
        var reader = JSONReader(bytes)
        var scope: Scope?
        var clientID: String?
        var request = ExchangeRequest(scope: "-", clientID: "")
        var seen = MemberNames()
        try reader.enterObject()
        while let name = try reader.nextMember() {
            try seen.insert(name, of: reader)
            let label = reader.string(name)
            do throws(JSONError) {
                switch label {
                case "scope": scope = Scope(try reader.readIdentifier(Identifier.isScope))
                case "clientId": clientID = try reader.readIdentifier(Identifier.isClient)
                case "protocolVersion": request.protocolVersion = try reader.readInteger()
                case "since": request.since = try reader.readOptionalString()
                case "limit": request.limit = try reader.readInteger()
                case "patches": if try reader.readBool() { request.takes.insert(.patches) }
                case "partial": if try reader.readBool() { request.takes.insert(.fields) }
                case "acked": try request.readAcked(from: &reader)
                case "operations": try request.readOperations(from: &reader, limit: operationLimit)
                case "device": request.report = try DeviceReport.read(from: &reader)
                default: try reader.skipUnknown()
                }
            } catch { throw error.inside(label) }
        }
        try reader.finish()
        guard let scope else { throw JSONError(.missingMember, at: 0).inside("scope") }
        guard let clientID else { throw JSONError(.missingMember, at: 0).inside("clientId") }
        request.scope = scope
        request.clientID = clientID
        self = request
    }

    /// Finds the scope that a body names, and looks at nothing else of it: who asks is authorized before his operations
    /// are read (I14). It copies nothing, wherever the member stands.
    package static func scope(in bytes: UnsafeRawBufferPointer) throws(JSONError) -> Scope {
        var reader = JSONReader(bytes)
        try reader.enterObject()
        while let name = try reader.nextMember() {
            // A text is made only of a name with escapes.
            let isScope =
                name.hasEscapes ? reader.string(name) == "scope" : reader.bytes[name.range].elementsEqual(scopeName)
            guard isScope else {
                try reader.skip()
                continue
            }
            let start = reader.index
            do throws(JSONError) {
                guard let scope = Scope(try reader.readString()) else { throw JSONError(.invalidIdentifier, at: start) }
                return scope
            } catch { throw error.inside("scope") }
        }
        throw JSONError(.missingMember, at: 0).inside("scope")
    }

    private static let scopeName = Array("scope".utf8)

    private mutating func readAcked(from reader: inout JSONReader) throws(JSONError) {
        try reader.enterObject()
        while let name = try reader.nextMember() {
            let lane = reader.string(name)
            guard Identifier.isLane(lane) else { throw JSONError(.invalidIdentifier, at: name.range.lowerBound) }
            guard acked[lane] == nil else { throw JSONError(.duplicateMember, at: name.range.lowerBound) }
            guard acked.count < operationLaneLimit else {
                throw JSONError(.tooManyMembers, at: name.range.lowerBound, limit: operationLaneLimit)
            }
            acked[lane] = try reader.readInteger(in: 0...Int64.max)
        }
    }

    private mutating func readOperations(from reader: inout JSONReader, limit: Int) throws(JSONError) {
        try reader.enterArray()
        while try reader.nextElement() {
            guard operations.count < limit else { throw JSONError(.tooMany, at: reader.index, limit: limit) }
            do throws(JSONError) {
                let (key, operation) = try Operation.read(from: &reader)
                operations.append(SealedOperation(key: key, operation: operation))
            } catch { throw error.inside(index: operations.count) }
        }
    }
}

/// Lanes that one request may acknowledge: a device opens few in the time between two exchanges.
private let operationLaneLimit = 1000

extension JSONReader {
    package mutating func readOptionalString() throws(JSONError) -> String? {
        guard peek() != UInt8(ascii: "n") else {
            try readNull()
            return nil
        }
        return try readString()
    }
}
