public import Foundation

/// Where the files of attachments are kept on this device, and how eagerly they travel.
public struct AttachmentConfiguration: Hashable, Sendable {
    /// The folder, which is the library's alone: it makes it, names the files in it and removes them.
    public var folder: URL
    /// How many bytes may be there. Files that were not used for longest make room, but none before the server has
    /// acknowledged its bytes and a record that names them, and none that is pinned; `nil`: no limit.
    public var cacheLimit: Int64?
    /// How many files travel at once, at most.
    public var parallelTransfers = 4
    /// Whether files are uploaded where each byte costs the user money (``SyncConditions/isMetered``).
    public var uploadsOnMetered = true
    /// Whether files are downloaded by themselves where each byte costs the user money. A file that the app fetches
    /// comes in any case.
    public var downloadsOnMetered = true
    /// Whether backups of the device hold the folder: what the server has can be fetched again.
    public var isBackedUp = false
    /// Whether the files can be read only while the device is unlocked; uploads wait then, too.
    public var isLockedWithDevice = false
    /// How many bytes of a file one request carries, at most; fewer after failures.
    package var partBytes = 1 << 20

    /// The defaults for a folder.
    public init(folder: URL) { self.folder = folder }
}
