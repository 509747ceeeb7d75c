import Foundation
import TidemarkCore
import TidemarkWire

extension SyncServer {
    /// How often a device that does nothing new is written down.
    private static let interval: Int64 = 60 * 60 * 1000

    /// The news of a request's device that have to be written down; `nil` where the store knows it all already.
    ///
    /// - Parameters:
    ///   - version: what its checkpoint holds on to, where it shows one.
    ///   - oldest: the first version that its verdicts name.
    ///   - report: its own word.
    func news(
        of device: DeviceName?, at version: Version?, naming oldest: Version? = nil,
        telling report: DeviceReport? = nil, _ reader: any ScopeReader
    ) throws -> DeviceNews? {
        let found = try device.flatMap { try reader.standing(of: $0) }
        return try news(of: device, found, at: version, naming: oldest, telling: report, reader)
    }

    /// The same, where its standing is known already.
    func news(
        of device: DeviceName?, _ found: DeviceStanding?, at version: Version?, naming oldest: Version? = nil,
        telling report: DeviceReport? = nil, _ reader: any ScopeReader
    ) throws -> DeviceNews? {
        guard let device else { return nil }
        let known = found?.standing
        var standing = DeviceStanding(version: version, seen: configuration.moment())
        if version == nil, let oldest, known?.firstHeld.map({ oldest < $0 }) ?? true { standing.oldest = oldest }
        let words = report?.withoutRemedy
        // A report of a remedy alone is from a device that tells nothing of itself.
        let isSilent = report?.remedy != nil && words == DeviceReport()
        let isTold = try !isSilent && words.map { try $0.isNews(after: reader.report(of: device)) } ?? false
        let outcome = report?.remedy.flatMap { found?.remedy?.isNews($0) == true ? $0 : nil }
        guard isTold || outcome != nil || standing.standing.isNews(after: known, interval: Self.interval) else {
            return nil
        }
        return DeviceNews(standing: standing, report: isTold ? words : nil, outcome: outcome)
    }

    /// The first version of what a device may hold although it shows no checkpoint: what verdicts have named to it, or
    /// what has come since the checkpoint that it showed last. `nil` for one that was given nothing.
    func firstHeld(by device: DeviceName?, _ reader: any ScopeReader) throws -> Version? {
        guard let device else { return nil }
        if let known = try reader.standing(of: device)?.standing.firstHeld { return known }
        // It was forgotten, and its verdicts with it: they may have named any version.
        return try reader.lanes(of: device, limit: 1).isEmpty ? nil : 1
    }

    /// Writes down what a read has told. The answer does not depend on it: a store that is full can still be read.
    func note(_ news: DeviceNews?, of device: DeviceName?, in scope: Scope) async {
        guard let news, let device else { return }
        try? await writeScope(scope, for: device.principal) { writer in
            try self.note(news, of: device, writer)
        }
    }

    /// A new device takes the place of one that was silent for longest, where its owner has as many as he may (I14).
    func note(_ news: DeviceNews?, of device: DeviceName?, _ writer: any ScopeWriter) throws {
        guard let news, let device else { return }
        let known = try writer.standing(of: device)
        try writer.note(news.standing, of: device)
        if let report = news.report { try writer.note(report, at: news.standing.seen, of: device) }
        // The operator may have asked for something else meanwhile.
        if let outcome = news.outcome, var remedy = known?.remedy, remedy.isNews(outcome) {
            (remedy.outcome, remedy.told) = (outcome, Date(milliseconds: news.standing.seen))
            try writer.note(remedy, of: device)
        }
        if known == nil { try writer.forgetDevices(beyond: limits.devices, besides: device) }
    }
}

/// The news of a device in its request.
struct DeviceNews: Hashable, Sendable {
    var standing: DeviceStanding
    /// Its own word, where that is another one than before.
    var report: DeviceReport?
    /// The outcome of the operator's remedy, where the store does not know it.
    var outcome: RemedyOutcome?
}

extension Access {
    /// The device, where the scope remembers it: one that may write. A reader's has no edits, loses nothing by
    /// beginning anew, and holds back nothing; else each made-up name would be a row, and keep deletions (I14).
    func remembered(_ device: DeviceName?) -> DeviceName? {
        switch level {
        case .readWrite: device
        case .none, .read: nil
        }
    }

    /// The device that a caller says it is; `nil` where it does not say.
    func device(_ client: String?) throws(Problem) -> DeviceName? {
        guard let client else { return nil }
        guard Identifier.isClient(client) else {
            throw Problem(
                .invalidIdentifier, "In `\(ProtocolVersion.clientHeader)`: a name that is not of the allowed form.")
        }
        return DeviceName(principal: principal, client: client)
    }
}
