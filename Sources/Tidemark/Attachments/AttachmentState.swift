public import GRDB
import TidemarkWire

/// How the bytes of an attachment stand between this device and the server.
public enum AttachmentState: Hashable, Sendable {
    /// Here, and not on the server yet.
    case local
    /// Being uploaded; so many bytes have arrived.
    case uploading(sent: Int64)
    /// Here, and acknowledged by the server.
    case uploaded
    /// On the server, as far as is known, and not here.
    case remote
    /// Not here, and on the server neither: the device that has them has not uploaded them yet. They are asked for
    /// again.
    case awaited
    /// Being downloaded; so many bytes have come.
    case downloading(received: Int64)
    /// Here, from the server.
    case here
    /// Nothing is tried any more, until ``Attachments/retry(_:)``.
    case failed(AttachmentFailure)

    /// Reads the columns `state`, `bytes` and `reason` of the view `tidemark_attachment`; `nil` where `state` is NULL
    /// or a later version's word.
    public init?(row: Row) {
        let bytes: Int64 = row["bytes"] ?? 0
        self.init(state: row["state"], bytes: bytes, reason: row["reason"])
    }

    init?(state: String?, bytes: Int64, reason: String?) {
        switch state {
        case "local": self = .local
        case "uploading": self = .uploading(sent: bytes)
        case "uploaded": self = .uploaded
        case "remote": self = .remote
        case "awaited": self = .awaited
        case "downloading": self = .downloading(received: bytes)
        case "here": self = .here
        case "failed": self = .failed(AttachmentFailure(rawValue: reason ?? ""))
        default: return nil
        }
    }
}

extension AttachmentState: CustomStringConvertible {
    /// A sentence for a log or a screen: `Being uploaded, 400 bytes so far.`
    public var description: String {
        switch self {
        case .local: "Here, and not on the server yet."
        case .uploading(let sent): "Being uploaded, \(counted(sent, "byte")) so far."
        case .uploaded: "Here and on the server."
        case .remote: "On the server, and not here."
        case .awaited: "Not uploaded yet by the device that has it."
        case .downloading(let received): "Being downloaded, \(counted(received, "byte")) so far."
        case .here: "Here, from the server."
        case .failed(let failure): "Failed with \(failure.rawValue.printable)."
        }
    }
}

/// Why an attachment does not travel, as a name that stays. A refusal has the code of the server's problem.
public struct AttachmentFailure: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    /// The name, such as `file_damaged`.
    public var rawValue: String

    /// Makes a failure from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// The name.
    public var description: String { rawValue }

    /// The file is not what its name says any more. Add the bytes again.
    public static let fileDamaged = AttachmentFailure(rawValue: "file_damaged")
    /// The file is gone, and the server does not have it.
    public static let fileMissing = AttachmentFailure(rawValue: "file_missing")
    /// The server's bytes were others than the reference says, several times.
    public static let wrongBytes = AttachmentFailure(rawValue: "wrong_bytes")
    /// The server takes no file as large.
    public static let tooLarge = AttachmentFailure(rawValue: "request_too_large")
}

/// How urgently a file is fetched, among those that wait.
public struct AttachmentPriority: RawRepresentable, Hashable, Comparable, Sendable {
    /// The priority as a number: the larger, the sooner.
    public var rawValue: Int

    /// Makes a priority.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Behind all that travels by itself.
    public static let low = AttachmentPriority(rawValue: -1)
    /// As what travels by itself.
    public static let normal = AttachmentPriority(rawValue: 0)
    /// Something that the user looks at.
    public static let high = AttachmentPriority(rawValue: 1)

    /// Whether one is less urgent than another.
    public static func < (lhs: AttachmentPriority, rhs: AttachmentPriority) -> Bool { lhs.rawValue < rhs.rawValue }
}

/// How much waits to travel.
public struct AttachmentProgress: Hashable, Sendable {
    /// Files to upload.
    public var uploads = 0
    /// Files to download, without those that no device has uploaded yet.
    public var downloads = 0
    /// Their bytes that are not across yet.
    public var bytesLeft: Int64 = 0
    /// Files that no device has uploaded yet.
    public var awaited = 0
    /// Files of which nothing is tried any more.
    public var failed = 0

    /// Makes a value, for previews and tests.
    public init() {}

    init(_ db: Database) throws {
        let waiting = try Blob.waiting(db)
        (uploads, downloads) = (Int(waiting.uploads), Int(waiting.downloads))
        (bytesLeft, awaited) = (waiting.bytesLeft, Int(waiting.awaited))
        failed = try Blob.countFailed(db)
    }
}

extension AttachmentProgress: CustomStringConvertible {
    /// A sentence for a log or a screen: `2 to upload, 3 to download, 400 bytes left, 1 failed.`
    public var description: String {
        let parts = [
            "\(uploads) to upload", "\(downloads) to download", "\(counted(bytesLeft, "byte")) left",
            awaited > 0 ? "\(awaited) not uploaded by anybody yet" : nil, failed > 0 ? "\(failed) failed" : nil,
        ]
        return parts.compactMap(\.self).joined(separator: ", ") + "."
    }
}
