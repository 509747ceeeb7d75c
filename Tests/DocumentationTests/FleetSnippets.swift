import Tidemark

/// The code of Documentation/Fleet.md, compiled as it stands there; `SnippetTests` compares the two.
private func told(isOpenToSupport: Bool) -> SyncConfiguration {
    // snippet: fleet
    var configuration = SyncConfiguration()
    configuration.appVersion = "2.1"  // else that of the main bundle
    configuration.sendsReports = isOpenToSupport
    // end snippet
    return configuration
}
