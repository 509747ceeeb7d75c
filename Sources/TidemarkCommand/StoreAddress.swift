#if Server
    import Foundation
    import TidemarkPostgres
    import TidemarkSQLite
    import TidemarkServer

    /// `sqlite:PATH` or `postgres://…`. The latter may hold a password, and is never printed.
    enum StoreAddress: Hashable {
        case sqlite(path: String)
        case postgres(url: String)

        static let help = "Where the log is kept: sqlite:PATH or postgres://…"

        init(_ text: String?) throws {
            let forms =
                "--store sqlite:PATH or postgres://USER@HOST/DATABASE, TIDEMARK_STORE or `store:` in the configuration"
                + " file"
            guard let text else { throw Failure("no store is named", hint: "name one with \(forms)") }
            if text.hasPrefix("postgres://") || text.hasPrefix("postgresql://") {
                self = .postgres(url: text)
            } else if text.hasPrefix("sqlite:"), text.utf8.count > 7 {
                self = .sqlite(path: String(text.dropFirst(7)))
            } else {
                // A mistyped address may hold a password.
                let told = text.contains("@") ? "this" : "'\(text)'"
                throw Failure("\(told) is not a store that this server has", hint: "name one with \(forms)")
            }
        }

        /// Where a secret may be kept beside the store; `nil` where the store is no file.
        var path: String? {
            switch self {
            case .sqlite(let path): path
            case .postgres: nil
            }
        }

        /// A mistyped folder should be heard of at the start, not found out from a server that began from nothing.
        func checkFolder() throws {
            guard let path else { return }
            let folder = URL(filePath: path).deletingLastPathComponent().path(percentEncoded: false)
            var isFolder: ObjCBool = false
            guard FileManager.default.fileExists(atPath: folder, isDirectory: &isFolder), isFolder.boolValue else {
                throw Failure("the store's folder \(folder) does not exist", hint: "make it: mkdir -p '\(folder)'")
            }
            guard FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder.boolValue else {
                return
            }
            throw Failure("\(path) is a folder", hint: "name a file in it, for example sqlite:\(path)/sync.sqlite")
        }

        /// A command that only tends a store does not make one.
        func checkFile() throws {
            try checkFolder()
            guard let path, !FileManager.default.fileExists(atPath: path) else { return }
            throw Failure("the store \(path) does not exist", hint: "check the path; `tidemark serve` makes it")
        }

        static let partitionRange = PostgresStore.Configuration.partitionRange

        /// - Parameter partitions: into how many parts a new store's tables are divided, as it was set.
        func open(partitions text: String?) throws -> OpenStore {
            let partitions = try text.map(readPartitions) ?? 0
            switch self {
            case .sqlite(let path):
                do {
                    let store = try SQLiteStore(path: path)
                    return OpenStore(log: store) { try? store.close() }
                } catch let error as NewerStore {
                    throw Failure(
                        "the store \(path) cannot be opened: \(error)",
                        hint: "start the newer version, or give this one a store of its own")
                } catch {
                    throw Failure(
                        "the store \(path) cannot be opened", because: error,
                        hint: "check that the file is a Tidemark store and may be written")
                }
            case .postgres(let url):
                do {
                    var configuration = PostgresStore.Configuration()
                    configuration.partitions = partitions
                    let store = try PostgresStore(url: url, configuration: configuration)
                    return OpenStore(log: store, isOtherwisePartitioned: text != nil && partitions != store.partitions)
                    {
                        store.close()
                    }
                } catch {
                    throw Failure(
                        "the store cannot be opened: \(error)",
                        hint: "check the address, and that the role may make the schema `tidemark_log` or owns it")
                }
            }
        }
    }

    extension StoreAddress {
        private func readPartitions(_ text: String) throws -> Int {
            guard let number = Int(text), Self.partitionRange.contains(number) else {
                throw Failure(
                    "'\(text)' is not a number of partitions",
                    hint: "give one from \(Self.partitionRange.lowerBound) (none) to \(Self.partitionRange.upperBound)")
            }
            guard case .sqlite = self, number > 0 else { return number }
            throw Failure(
                "a store in a file has no partitions", hint: "leave them out, or name a store in PostgreSQL")
        }
    }

    /// A store, and how to let go of it.
    struct OpenStore {
        let log: any ChangeStore
        /// Whether its tables are divided in another way than was set, since they were made before that.
        var isOtherwisePartitioned = false
        let close: @Sendable () -> Void
    }
#endif
