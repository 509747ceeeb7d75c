import Foundation
import PostgresCluster
import Testing
import TidemarkPostgres
import TidemarkServer

@Suite("PostgreSQL over TLS, as the address says")
struct PostgresTLSTests {
    /// A server that lets nobody in from the network but over TLS. Somebody else may take the port before it does.
    private static func cluster() throws -> PostgresCluster {
        for _ in 0..<4 {
            if let cluster = try? PostgresCluster(tlsPort: freePort()) { return cluster }
        }
        return try PostgresCluster(tlsPort: freePort())
    }

    private static func freePort() throws -> Int {
        let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(socket) }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = in_addr_t(INADDR_LOOPBACK).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let isBound = withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(socket, $0, length) == 0 && getsockname(socket, $0, &length) == 0
            }
        }
        return isBound ? Int(UInt16(bigEndian: address.sin_port)) : 0
    }

    @Test("A server that is to be verified is verified, and no other is written to", .timeLimit(.minutes(5)))
    func verified() async throws {
        let cluster = try await offPool { try Self.cluster() }
        func open(_ options: String) async throws -> PostgresStore {
            var configuration = PostgresStore.Configuration()
            (configuration.writers, configuration.readers) = (1, 1)
            let settings = configuration
            return try await offPool { try PostgresStore(url: cluster.tlsURL(options), configuration: settings) }
        }
        let store = try await open("sslmode=verify-full&sslrootcert=\(cluster.certificate)")
        _ = try await store.write("s") { writer in try writer.append(.event("e"), at: 1) }
        let encrypted = try await offPool {
            try cluster.psql(
                """
                SELECT bool_and(ssl) AND count(*) > 0 FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
                WHERE application_name = 'tidemark'
                """)
        }
        #expect(encrypted == "t")
        try await offPool { store.close() }
        // Another authority than the server's, another name than the certificate's, no encryption at all.
        let other = try await offPool { try Self.cluster() }
        let address = cluster.tlsURL("sslmode=verify-full&sslrootcert=\(cluster.certificate)")
        for refused in [
            cluster.tlsURL("sslmode=verify-full&sslrootcert=\(other.certificate)"),
            address.replacing("@localhost", with: "@127.0.0.1"), cluster.tlsURL("sslmode=disable"),
        ] {
            let error = await #expect(throws: PostgresError.self, "\(refused)") {
                try await offPool { try PostgresStore(url: refused) }
            }
            #expect(error?.code == .connection, "\(refused)")
        }
    }
}
