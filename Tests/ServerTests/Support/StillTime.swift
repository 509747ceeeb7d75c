@testable import TidemarkServer

extension SyncServer.Configuration {
    /// The defaults with an uptime that stands still: a busy machine does not cut a push short (`Limits.pushTime`).
    static var still: Self {
        var configuration = Self()
        configuration.uptime = { .zero }
        return configuration
    }
}
