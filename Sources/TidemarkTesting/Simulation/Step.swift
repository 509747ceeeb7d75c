import Tidemark
import TidemarkServer

/// One thing that happens in a simulated world. A world is played from a list of these, so a list can be written down,
/// made shorter, and played again.
enum Step: Hashable, Sendable {
    /// The app does one of its acts; `choice` is the seed of what it picks in it.
    case edit(device: Int, act: String, choice: UInt64)
    /// The user pulls to refresh.
    case sync(Int)
    /// Something happens to one of the messages that are under way, counted from the oldest.
    case pass(Int, Fate)
    /// Something happens to one of those that carry bytes of attachments, or ask for them.
    case passFile(Int, Fate)
    /// All messages arrive, and those that follow from them.
    case flow
    /// Time goes by, in milliseconds.
    case wait(Int64)
    /// The app is killed after so many half uses of its file and wire.
    case kill(Int, after: Int)
    /// The app is killed just before or after the next time that it writes or sends this, by its name.
    case killAt(Int, point: String, isAfter: Bool)
    /// The app is started again.
    case start(Int)
    /// A copy of the device's file is made.
    case backUp(Int)
    /// The device's file is the copy.
    case restore(Int)
    /// The second device's file becomes a copy of the first one's.
    case clone(Int, to: Int)
    /// The device's clock is set this many milliseconds off.
    case setClock(Int, Int64)
    /// What the server grants the device's user in one of the scopes.
    case grant(user: Int, scope: Int, Access.Level)
    /// The server's operator asks something of the device, in all its scopes.
    case remedy(Int, Remedy)
    /// An extension of the device's app does something, or another program on its file.
    case second(Int, SecondAct)
    /// Something is done with one of the files that the device's rows name, counted in an order of theirs.
    case file(Int, FileAct, choice: UInt64)
    /// Whether the device's disk takes any more bytes of files.
    case disk(Int, isFull: Bool)
    case server(ServerStep)

    enum ServerStep: Hashable, Sendable {
        case restart
        /// The server is killed after so many uses of its store, each of which counts three times: just before it,
        /// within it, where a write is undone, and just after it. It is started again at once.
        case kill(after: Int)
        case backUp
        case restore
        /// A copy of the server's machine is made, store and all. It waits, in the place of an earlier one.
        case clone
        /// The copy answers from now on, and what answered until now waits.
        case exchange
        case sweep
        /// Old history goes, as if so many milliseconds had passed.
        case compact(Int64)
        /// The next requests are answered with 503.
        case fail(Int)
        /// One of the nodes begins anew, with other settings.
        case change(node: Int, to: UInt64)
        /// The server's clock is set this many milliseconds off.
        case setClock(Int64)
        /// Whether the server's disk takes any more bytes of blobs.
        case disk(isFull: Bool)
    }

    /// What becomes of a message.
    enum Fate: Hashable, Sendable {
        case arrives
        case isLost
        /// A request that arrives now, and once more later. An answer just arrives.
        case isRepeated
        /// An answer or an upload of which this many thousandths arrive. Another request is lost.
        case isCut(Int)
        /// A login page in the place of an answer. Bytes of an attachment may also come changed, in either direction.
        case isReplaced
        /// An earlier answer of the server to the same question.
        case isOld
    }
}

/// What apps write and send, by the names that scripts have for it.
enum KillPoint {
    static let all = WritePoint.allCases.map(\.rawValue) + ["/sync", "/sync/push", "/sync/snapshot", "/sync/digest"]
    /// A request for the bytes of an attachment.
    static let file = "/sync/blobs"
    /// Where only apps with attachments come.
    static let files = [file] + FileUse.allCases.map(\.rawValue)
    /// Those that every app comes to.
    static let everyday = [WritePoint.seal, .apply, .page].map(\.rawValue) + ["/sync", "/sync/push", "/sync/snapshot"]
}
