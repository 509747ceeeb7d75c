import Foundation
import Tidemark

/// Notes on what was seen outdoors, where there is no network: two screens, in the terminal.
///
///     NOTES_FILE=ada.sqlite NOTES_USER=ada NOTES_SERVER=http://127.0.0.1:8080 NOTES_TOKEN=… field-notes
///
/// `Views.swift` shows the same screens with SwiftUI.
@main
struct FieldNotes {
    static func main() async throws {
        let environment = ProcessInfo.processInfo.environment
        guard let scope = environment["NOTES_USER"].flatMap({ Scope("user:\($0)") }),
            let token = environment["NOTES_TOKEN"],
            let server = environment["NOTES_SERVER"].flatMap({ URL(string: $0) })
        else {
            print("Set NOTES_SERVER, NOTES_USER and NOTES_TOKEN, and NOTES_FILE unless it is notes.sqlite.")
            return
        }
        let notebook = try Notebook(
            path: environment["NOTES_FILE"] ?? "notes.sqlite", scope: scope, transport: HTTPTransport(server) { token })
        await Terminal(notebook).run()
    }
}
