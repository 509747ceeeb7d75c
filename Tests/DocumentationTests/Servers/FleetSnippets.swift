import Tidemark
import TidemarkServer

/// The code of Documentation/Fleet.md, compiled as it stands there; `SnippetTests` compares the two.
private func told(isOpenToSupport: Bool) -> SyncConfiguration {
    // snippet: fleet
    var configuration = SyncConfiguration()
    configuration.appVersion = "2.1"  // else that of the main bundle
    configuration.sendsReports = isOpenToSupport
    // end snippet
    return configuration
}

private func asked(_ server: SyncServer) async throws {
    // snippet: remedies
    try await server.remedy(.slowDown(interval: .seconds(600)), for: "phone-4711")
    try await server.remedy(.stop(message: "Please update the app."), for: "phone-4711", in: "workspace:1")
    // end snippet
}
