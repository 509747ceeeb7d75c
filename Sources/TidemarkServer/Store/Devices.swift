public import TidemarkWire

/// Reads which devices of a scope are known, and from which version on deletions are kept for them. It is used on one
/// thread, as ``ScopeReader`` is.
public protocol DeviceReader {
    /// The standing of a device; `nil` for one that was never heard of, or too long ago.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func standing(of device: DeviceName) throws -> DeviceStanding?

    /// What a device has told of itself last; `nil` where it has told nothing.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func report(of device: DeviceName) throws -> DeviceReport?

    /// The lowest version that a device of the scope holds on to; `nil` where none does.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func slowest() throws -> Version?

    /// How many devices were last heard of before one moment, and how many lanes were last used before another by
    /// devices that are not known.
    ///
    /// - Throws: an error of the store's own, as ``ScopeReader`` says.
    func unheard(devicesBefore: Int64, lanesBefore: Int64) throws -> (devices: Int, lanes: Int)
}

/// Writes down devices, and forgets those that were silent for too long. It is used on one thread, as ``ScopeWriter``
/// is.
public protocol DeviceWriter: DeviceReader {
    /// Remembers a device, in a scope that was written to. A standing without a version leaves the one that is known,
    /// and its oldest where it has none itself; one with a version takes the place of both.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    func note(_ standing: DeviceStanding, of device: DeviceName) throws

    /// Keeps what a device that is remembered has told of itself at a moment.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    func note(_ report: DeviceReport, at moment: Int64, of device: DeviceName) throws

    /// Keeps what the operator asks of a device that is remembered, in the place of what he asked before.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    func note(_ remedy: KeptRemedy, of device: DeviceName) throws

    /// Forgets, as `forget(devicesBefore:lanesBefore:limit:)` does, those of a device's owner's that were silent for
    /// longest, so that at most `limit` are left, that one among them; of two that are as old the last by name goes.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    func forgetDevices(beyond limit: Int, besides device: DeviceName) throws

    /// Forgets devices that were last heard of before a moment, with the verdicts kept for them, and lanes that were
    /// last used before another by devices that are not known; at most `limit` of each. Answers how many went. The
    /// lanes of a device count as used when that was last heard of.
    ///
    /// - Throws: an error of the store's own, as ``ScopeWriter`` says.
    func forget(devicesBefore: Int64, lanesBefore: Int64, limit: Int) throws -> (devices: Int, lanes: Int)
}
