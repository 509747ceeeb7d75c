import CFaultDisk
import GRDB

/// A disk in memory that fails on purpose; SQLite keeps files on it whose paths begin with ``directory``.
///
/// `@unchecked` because the disk behind the handle has a lock of its own.
final class FaultDisk: @unchecked Sendable {
    /// Kinds of calls.
    struct Calls: OptionSet, Hashable {
        let rawValue: UInt32

        static let open = Calls(rawValue: UInt32(FAULTDISK_OPEN))
        static let read = Calls(rawValue: UInt32(FAULTDISK_READ))
        static let write = Calls(rawValue: UInt32(FAULTDISK_WRITE))
        static let truncate = Calls(rawValue: UInt32(FAULTDISK_TRUNCATE))
        static let sync = Calls(rawValue: UInt32(FAULTDISK_SYNC))
        static let delete = Calls(rawValue: UInt32(FAULTDISK_DELETE))
        static let lock = Calls(rawValue: UInt32(FAULTDISK_LOCK))
        static let all = Calls(rawValue: UInt32(FAULTDISK_ALL))
    }

    /// How a disk, or what is left of one, differs from a good one.
    struct Traits: OptionSet, Hashable {
        let rawValue: UInt32

        static let syncLies = Traits(rawValue: UInt32(FAULTDISK_SYNC_LIES))
        static let keepsWrites = Traits(rawValue: UInt32(FAULTDISK_KEEPS_WRITES))
        static let keepsNames = Traits(rawValue: UInt32(FAULTDISK_KEEPS_NAMES))
    }

    /// What an ordered failure is.
    struct Fault: Hashable, CustomStringConvertible {
        var description: String
        var code: Int32
        var calls: Calls
        var again = false

        static let powerCut = Fault(description: "power cut", code: Int32(FAULTDISK_POWER_CUT), calls: .all)
        static let busy = Fault(description: "busy", code: ResultCode.SQLITE_BUSY.rawValue, calls: .lock)
        static let full = Fault(description: "full", code: ResultCode.SQLITE_FULL.rawValue, calls: .write)
        static let staysFull = Fault(
            description: "stays full", code: ResultCode.SQLITE_FULL.rawValue, calls: .write, again: true)
        static let badWrite = Fault(
            description: "bad write", code: ResultCode.SQLITE_IOERR_WRITE.rawValue, calls: .write)
        static let badSync = Fault(
            description: "bad sync", code: ResultCode.SQLITE_IOERR_FSYNC.rawValue, calls: .sync)
        static let badRead = Fault(
            description: "bad read", code: ResultCode.SQLITE_IOERR_READ.rawValue, calls: .read)
    }

    private static let registered = faultdisk_register()
    private let handle: OpaquePointer
    let directory: String

    init(_ traits: Traits = []) {
        precondition(Self.registered == ResultCode.SQLITE_OK.rawValue, "SQLite takes no file system")
        handle = faultdisk_new(traits.rawValue)
        directory = String(cString: faultdisk_directory(handle))
    }

    private init(handle: OpaquePointer) {
        self.handle = handle
        directory = String(cString: faultdisk_directory(handle))
    }

    deinit { faultdisk_free(handle) }

    func path(_ name: String) -> String { directory + name }

    /// The n-th call from now, of the fault's kinds, fails so.
    func fail(at n: Int, _ fault: Fault) {
        faultdisk_fail(handle, fault.calls.rawValue, UInt64(n), fault.code, fault.again ? 1 : 0)
    }

    func endFaults() { faultdisk_end_faults(handle) }

    func cut() { faultdisk_cut(handle) }

    var isOff: Bool { faultdisk_is_off(handle) != 0 }

    var failures: Int { Int(faultdisk_failures(handle)) }

    /// The kind and file of the call that failed last.
    var failedCall: String { String(cString: faultdisk_failed_call(handle)) }

    func count(_ calls: Calls = .all) -> Int { Int(faultdisk_count(handle, calls.rawValue)) }

    /// What the disk may hold when the power is back; it is off from then on.
    func image(_ seed: UInt64, _ traits: Traits = []) -> FaultDisk {
        FaultDisk(handle: faultdisk_image(handle, seed, traits.rawValue))
    }

    /// A disk with the same files, made while nobody writes.
    func copy(_ traits: Traits = []) -> FaultDisk {
        FaultDisk(handle: faultdisk_copy(handle, traits.rawValue))
    }
}
