import Foundation
import TidemarkServer
import TidemarkWire

extension SyncServer {
    /// The newest version in the scope that tests of one scope use.
    func head() async throws -> Int64 {
        let bytes = try await changes(in: "w:1", since: nil, limit: 1, access: .read(as: "ada"))
        let answer = try JSONSerialization.jsonObject(with: Data(bytes)) as? [String: Any]
        return (answer?["head"] as? NSNumber)?.int64Value ?? -1
    }
}
